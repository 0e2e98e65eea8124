// Package yamlfile reads YAML strictly into Go structs: unknown and duplicate keys, tags, wrong
// types and missing keys are all reported together, with position, excerpt and hint.
//
// [Parse] makes a [Document] of [Node]s without aliases and merges. A [Decoder] fills structs by
// their tags (see [FieldsOf]), and uses a type's [Form] for everything else.
//
// It imports the YAML libraries, internal/nearest, internal/smallfile and the standard library
// only.
package yamlfile
