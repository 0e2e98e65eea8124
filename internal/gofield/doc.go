// Package gofield relates the fields of Go structs to the values of rows: their names, their kinds, and how a
// value enters a field and leaves it.
//
// It imports core/row and core/exception only.
package gofield
