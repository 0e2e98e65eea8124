// Package repository keeps the history of jobs in a database, over gorm: a
// [core.JobRepository] for SQLite and PostgreSQL.
//
// Its one idea is that the database is the referee. Every change of a status is
// one guarded UPDATE, whose allowed states come from core.Executions() and which
// names the owner and the epoch it is made for; 0 rows mean that somebody else
// moved first, and the row is then read only to say how (applied, duplicate,
// rejected). A launch is one transaction that locks the instance's row, so of
// two processes exactly one wins (rule L1), and takes over what a lost owner left
// (rules L2, L5). All times are the database's (rule L6).
//
// Read in this order: schema.go and migrations/ (the tables), rows.go (how they
// map to the records of core), launch.go, transition.go, checkpoint.go,
// journal.go, explorer.go.
//
// It imports core, tx, gorm, internal/gormtx, internal/migrator and internal/dberr.
package repository
