// Package source has the texts of job files and of the files that they name: on the disk, in a file system, in
// memory, made by Go code, or in the history of an execution.
//
// It imports core, internal/smallfile, internal/nearest and internal/yamlfile.
package source
