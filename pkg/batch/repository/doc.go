// Package repository keeps the history of jobs in a database, over gorm: the ports of internal/ports for
// SQLite and PostgreSQL.
//
// The database decides every race. Every change of a status is one guarded UPDATE. Its allowed
// states come from core.Executions(), and it names the owner and the epoch that it is made for. If
// it finds no row, another process moved first; reading the row again determines the result
// (applied, duplicate, rejected). A launch is one transaction that locks the instance's row, so
// exactly one of two processes wins (rule L1). It takes over the execution of a lost owner (rules
// L2, L5). All times are the database's (rule L6).
//
// Each port of internal/ports has a small type. They stand on layers that know no port, and the
// arrows go one way: store (the statements) and rows; auditor (ledger.go) and announcements; endings
// (what ends with an execution, and the order of locks); moves (the guarded UPDATE); jobGuard,
// takeovers and explorer. Read in this order: schema.go and migrations/ (the tables), store.go,
// rows.go, moves.go, launch.go, takeover.go, transitions.go, checkpoint.go, journal.go, explorer.go,
// repository.go. claim.go, checkpointsync.go and gc.go keep checkpoints in the databases of the
// steps.
//
// It imports core, tx, gorm, internal/gormtx, internal/migrator and internal/dberr.
package repository
