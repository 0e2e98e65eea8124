// Package core is the vocabulary of the framework: statuses, execution records, parameters and the
// execution context; tasklets, deciders, partitioners and listeners; guarded moves; events and errors.
// Items are in core/item, tasks in core/task. The engine's own types are in internal/model (a compiled
// job) and internal/ports (the repository).
//
// It imports the standard library, its folders, internal/calendar and internal/jsontext.
package core
