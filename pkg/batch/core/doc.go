// Package core is the vocabulary of the framework: items and their readers,
// processors and writers; steps, jobs and flows; execution records, parameters
// and the execution context; the table of moves and the journal; events; and the
// repository's interfaces. It contains no engine.
//
// It imports the standard library, core/exception, core/row and core/jsontext only.
package core
