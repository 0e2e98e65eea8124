// Package inbox takes events at least once, in any order, stores each once, and offers it to a handler that
// moves the row (package guard) in one transaction with the note that it is processed. Too early, it is
// offered again when its row has moved (rules I1 to I4).
//
// The repository's migrations make the table.
//
// It imports core, guard, tx and internal/gormtx.
package inbox
