// Package itemtype makes item types of the types in a job file: a name, or a map of fields.
//
// It imports core, internal/schedule, internal/yamlfile, and language of this folder.
package itemtype
