// Package source has the texts of job files and the files that they name, wherever they are.
//
// It imports core, internal/smallfile, internal/nearest and internal/yamlfile.
package source
