// Package row is the built-in item type of jobs written in YAML alone: named,
// ordered, typed values ([Row]) with a [Schema], and the rules by which text
// becomes a [Value] and back. Go structs meet the same readers and writers
// through a schema derived from their fields (see item.TypeOf).
//
// It imports core/exception, core/jsontext and the standard library.
package row
