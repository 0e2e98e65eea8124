// Package tasks keeps tasks in the repository's database. Every state change is one guarded UPDATE (package
// guard) in one transaction with its rows.
//
// It imports core, tx, guard and internal/gormtx.
package tasks
