// Package language is the language of job files: the structs that a file is decoded into, with
// keys, types, defaults and descriptions in their tags. Schema and reference are generated from
// them (package docs). To add a key, add a field.
//
// It imports core, tx, internal/secret and internal/yamlfile.
package language
