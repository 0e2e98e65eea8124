// Package item holds the contracts of a chunk step's items: reader, processor, writer and optional interfaces
// ([Opener], [Positioner], ...), the item [Type], and the engine's forms without a type parameter ([Items],
// [Reader], [Processor], [Writer]).
//
// It imports the standard library, core/exception, core/row and core/jsontext only.
package item
