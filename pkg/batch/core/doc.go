// Package core is the vocabulary of the framework: items and their readers,
// processors and writers; steps, jobs and flows; execution records, parameters
// and the execution context; the status table; events; components and their
// registry; and the repository's interfaces. It contains no engine.
//
// It imports the standard library, core/exception, core/config and core/row only.
package core
