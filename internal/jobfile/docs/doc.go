// Package docs writes the JSON Schema and the reference pages of job files and components.
//
// It imports core, internal/yamlfile, and language of this folder.
package docs
