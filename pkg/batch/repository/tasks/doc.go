// Package tasks keeps tasks in the repository's database: groups, tasks, attempts, decisions, log
// text and workers. Every change of a task's state is one guarded UPDATE (package guard), in one
// transaction with its dependent rows. The migrations of the repository create the tables.
//
// Each port of internal/ports/taskports has a type, in a file that reads from the top. They share four
// layers, each of which knows only those before it: store (statements, transactions, the audit), moves
// (the guarded moves), order, groups and waiters (what a move affects), endings (the end of an attempt).
//
// It imports core, tx, guard and internal/gormtx.
package tasks
