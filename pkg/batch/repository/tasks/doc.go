// Package tasks keeps tasks in the repository's database: groups, tasks, attempts,
// decisions, log text and workers. Every change of a task's state is one guarded UPDATE
// (package guard), in one transaction with what belongs to it. The tables are made by the
// migrations of the repository.
//
// It imports core, tx, guard and internal/gormtx.
package tasks
