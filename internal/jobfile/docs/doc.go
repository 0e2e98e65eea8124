// Package docs writes the JSON Schema and the reference pages of job files and components, from the structs of
// package language and the config types of the components.
//
// It imports core, internal/yamlfile, and language of this folder.
package docs
