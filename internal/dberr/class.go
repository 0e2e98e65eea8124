package dberr

import (
	"database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite/lib"
)

// IsDeadlock reports a transaction that the database chose as the victim of a
// deadlock.
func IsDeadlock(err error) bool { return SQLState(err) == "40P01" }

// IsSerialization reports a transaction that does not fit into any order with the others: PostgreSQL's
// serialization failure, SQLite's stale snapshot.
func IsSerialization(err error) bool {
	return SQLState(err) == "40001" || SQLiteCode(err) == sqlite3.SQLITE_BUSY_SNAPSHOT
}

// IsTimeout reports that a wait of the database was over: for a lock ([IsBusy], without the stale snapshot,
// which waiting does not help), or of a statement for its end. PostgreSQL does not distinguish a
// statement_timeout from a cancel by an administrator.
func IsTimeout(err error) bool {
	return IsBusy(err) && !IsSerialization(err) || SQLState(err) == "57014"
}

// IsNotNullViolation reports a null where the table allows none.
func IsNotNullViolation(err error) bool {
	return SQLiteCode(err) == sqlite3.SQLITE_CONSTRAINT_NOTNULL || SQLState(err) == "23502"
}

// IsInvalidData reports a value that its column cannot hold: too long, out of range, not of the column's type
// (PostgreSQL's class 22, SQLite's STRICT tables). A malformed COPY (22P04) is the fault of its sender, not
// of a value.
func IsInvalidData(err error) bool {
	if state := SQLState(err); state != "" {
		return state[:2] == "22" && state != "22P04"
	}
	switch code := SQLiteCode(err); code & 0xff {
	case sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG:
		return true
	default:
		return code == sqlite3.SQLITE_CONSTRAINT_DATATYPE
	}
}

// IsNoConnection reports that no connection is available: it was lost ([IsConnectionLost]), or the server has
// none left (53300). A server that could not be reached is an error of package net.
func IsNoConnection(err error) bool {
	if state := SQLState(err); state != "" {
		return state == "53300" || IsConnectionLost(err)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, pgconn.ErrConnClosed)
}

// IsIO reports that the database could not read or write its files.
func IsIO(err error) bool {
	switch SQLiteCode(err) & 0xff {
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN:
		return true
	}
	switch SQLState(err) {
	case "53100", "58030", "58P01":
		return true
	}
	return false
}

// IsStatement reports an error caused by the text of a statement, or by a value that it computes.
func IsStatement(err error) bool {
	if state := SQLState(err); state != "" {
		switch state[:2] {
		case "0A", "21", "22", "26", "2F", "39", "42", "44", "P0":
			return true
		}
		return false
	}
	switch SQLiteCode(err) & 0xff {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE:
		return true
	}
	return false
}

// Position returns the character of a statement, from 1 on, at which PostgreSQL found a fault; 0 means that
// it named none.
func Position(err error) int {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return int(e.Position)
	}
	return 0
}
