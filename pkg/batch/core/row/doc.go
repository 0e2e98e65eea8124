// Package row is the item type of YAML jobs: typed values ([Row]) with a [Schema], and text to [Value] and
// back. Go structs use a derived schema (item.TypeOf).
//
// It imports core/exception, core/jsontext and the standard library.
package row
