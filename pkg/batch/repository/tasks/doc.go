// Package tasks keeps tasks in the repository's database: groups, tasks, attempts, decisions, log
// text and workers. Every change of a task's state is one guarded UPDATE (package guard), in one
// transaction with its dependent rows. The migrations of the repository create the tables.
//
// It imports core, tx, guard and internal/gormtx.
package tasks
