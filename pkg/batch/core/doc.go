// Package core is the framework's vocabulary: statuses, records, parameters, execution context, tasklets,
// deciders, partitioners, listeners, moves, events and errors. Items are in core/item, tasks in core/task; the
// engine's own types in internal/model and internal/ports.
//
// It imports the standard library, its folders, internal/calendar and internal/jsontext.
package core
