// Package repository keeps the history of jobs over gorm: a [core.JobRepository] for SQLite and PostgreSQL.
//
// The database decides every race. A status changes by one guarded UPDATE, with states of core.Executions(),
// owner and epoch; if it finds no row, reading it determines the answer (applied, duplicate, rejected). A
// launch locks the instance's row, so one of two wins (rule L1), and takes over lost executions (rules L2,
// L5). Times are the database's (rule L6).
//
// Read schema.go and migrations/, store.go, rows.go, launch.go, takeover.go, transition.go, checkpoint.go,
// journal.go, explorer.go; claim.go, checkpointsync.go and gc.go for checkpoints elsewhere.
//
// It imports core, tx, gorm, internal/gormtx, internal/migrator and internal/dberr.
package repository
