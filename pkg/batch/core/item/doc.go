// Package item holds the contracts of items: the reader, processor and writer of a chunk step, their
// optional interfaces ([Opener], [Positioner], [Rewinder], ...), the type of their items ([Type]), and
// the forms without a type parameter that an engine moves ([Items], [Reader], [Processor], [Writer]).
//
// It imports the standard library, core/exception, core/row and core/jsontext only.
package item
