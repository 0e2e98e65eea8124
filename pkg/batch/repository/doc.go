// Package repository keeps the history of jobs in a database, over gorm: a [core.JobRepository] for
// SQLite and PostgreSQL.
//
// The database decides every race. Every change of a status is one guarded UPDATE. Its allowed
// states come from core.Executions(), and it names the owner and the epoch that it is made for. If
// it finds no row, another process moved first; reading the row again determines the result
// (applied, duplicate, rejected). A launch is one transaction that locks the instance's row, so
// exactly one of two processes wins (rule L1). It takes over the execution of a lost owner (rules
// L2, L5). All times are the database's (rule L6).
//
// Read in this order: schema.go and migrations/ (the tables), store.go (the statements), rows.go
// (how rows map to the records of core), launch.go, takeover.go, transition.go, checkpoint.go,
// journal.go, explorer.go. claim.go, checkpointsync.go and gc.go keep checkpoints in the databases
// of the steps.
//
// It imports core, tx, gorm, internal/gormtx, internal/migrator and internal/dberr.
package repository
