// Package inbox takes events for rows of an application's tables: at least once, and in any order. It
// stores each of them once, and offers it to a handler that moves the row by its machine (package
// guard), in one transaction with the note that the event is processed. An event that comes too early
// is offered again when its row has moved (rules I1 to I4).
//
// The table of events is made by the migrations of the repository.
//
// It imports core, guard, tx and internal/gormtx.
package inbox
