// Package dberr classifies errors of databases by type and code, never by text.
//
// It imports the drivers, and nothing of ours.
package dberr

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLState returns PostgreSQL's five-letter code of err, or "".
func SQLState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// SQLiteCode returns SQLite's extended result code of err, or 0.
func SQLiteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// IsUniqueViolation reports a duplicate of a unique or primary key.
func IsUniqueViolation(err error) bool {
	switch SQLiteCode(err) {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return true
	}
	return SQLState(err) == "23505" || isUniqueMySQL(err)
}

// IsForeignKeyViolation reports a reference to a missing row, or the loss of a referenced row.
func IsForeignKeyViolation(err error) bool {
	switch SQLState(err) {
	case "23503", "23001": // the latter is ON DELETE RESTRICT since PostgreSQL 18
		return true
	}
	return SQLiteCode(err) == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY || isForeignMySQL(err)
}

// IsCheckViolation reports a row that a CHECK of a table or a view refuses.
func IsCheckViolation(err error) bool {
	switch SQLState(err) {
	case "23514", "44000":
		return true
	}
	return SQLiteCode(err) == sqlite3.SQLITE_CONSTRAINT_CHECK || isCheckMySQL(err)
}

// IsConstraintViolation reports unique, foreign key, not null and check
// violations.
func IsConstraintViolation(err error) bool {
	if state := SQLState(err); state != "" {
		return state[:2] == "23"
	}
	code := SQLiteCode(err)
	return code&0xff == sqlite3.SQLITE_CONSTRAINT && code != sqlite3.SQLITE_CONSTRAINT_COMMITHOOK || isConstraintMySQL(err)
}

// IsBusy reports that another writer holds a lock that the statement needed: SQLite's BUSY and LOCKED,
// PostgreSQL's lock_timeout and NOWAIT, MySQL's innodb_lock_wait_timeout and NOWAIT.
func IsBusy(err error) bool {
	switch SQLiteCode(err) & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return true
	}
	return SQLState(err) == "55P03" || isMySQL(err, 1205, 3572)
}

// IsReadOnly reports a write in a read-only transaction or on a read-only
// connection.
func IsReadOnly(err error) bool {
	return SQLiteCode(err)&0xff == sqlite3.SQLITE_READONLY || SQLState(err) == "25006" || isMySQL(err, 1290, 1792, 1836)
}

// IsCanceled reports a cancelled statement, by the caller's context, a statement_timeout or
// an administrator.
func IsCanceled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		SQLState(err) == "57014" || SQLiteCode(err)&0xff == sqlite3.SQLITE_INTERRUPT ||
		isMySQL(err, 1317, 1969, 3024)
}

// IsConnectionLost reports that the connection ended: the outcome of the statement is unknown.
func IsConnectionLost(err error) bool {
	if state := SQLState(err); state != "" {
		switch state {
		case "57P01", "57P02", "57P03", "57P05", "25P03", "25P04":
			return true
		}
		return state[:2] == "08"
	}
	return isLostMySQL(err)
}

// IsRolledBack reports, for a failed COMMIT, that the database itself declared that the transaction had no
// effect; otherwise its outcome is unknown (rule C10). A server that also ends the session (FATAL, PANIC) has
// not declared it. SQLite's driver rolls back after a refused COMMIT.
func IsRolledBack(err error) bool {
	if errors.Is(err, pgx.ErrTxCommitRollback) || errors.Is(err, sql.ErrTxDone) {
		return true
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return severity(e) == "ERROR" && e.Code != "40003" && !IsConnectionLost(err)
	}
	switch SQLiteCode(err) & 0xff {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY:
		return true
	}
	return EndsMySQL(err) && MySQLCode(err) != 1205
}

func severity(e *pgconn.PgError) string {
	if e.SeverityUnlocalized != "" {
		return e.SeverityUnlocalized
	}
	return e.Severity
}
