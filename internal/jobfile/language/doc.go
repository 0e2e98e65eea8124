// Package language is the language of job files: the structs that a file is decoded into, with the keys, types,
// defaults and descriptions in their tags, and the forms of the types that YAML can write in several ways.
// Schema and reference are generated from the same structs (package docs). To add a key, add a field.
//
// It imports core, tx, internal/secret and internal/yamlfile.
package language
