// Package yamlfile reads YAML strictly into Go structs: unknown and duplicate keys, tags, wrong types and
// missing keys are all reported together, each with its position, an excerpt and a hint.
//
// [Parse] makes a [Document] of plain [Node]s: aliases and merges are resolved, scalars are texts as written.
// A [Decoder] fills structs from nodes by their tags (see [FieldsOf]), and uses the [Form] of a type for
// everything else. The same tags make schema and reference pages, outside of this package.
//
// It imports the YAML libraries, internal/nearest, internal/smallfile and the standard library only.
package yamlfile
