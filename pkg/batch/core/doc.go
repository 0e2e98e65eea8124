// Package core is the vocabulary of the framework: jobs, flows and steps; execution
// records, parameters and the execution context; the table of moves and the journal;
// events; and the repository's interfaces. Items are in core/item. It contains no engine.
//
// It imports the standard library, core/exception, core/item and core/row only.
package core
