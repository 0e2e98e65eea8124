package dberr

import (
	"database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite/lib"
)

// IsDeadlock reports a transaction that the database chose as the victim of a
// deadlock.
func IsDeadlock(err error) bool { return SQLState(err) == "40P01" || isMySQL(err, 1213) }

// IsSerialization reports a serialization failure (PostgreSQL), a stale snapshot (SQLite), or a row that changed
// since it was read (MariaDB, groups of MySQL).
func IsSerialization(err error) bool {
	return SQLState(err) == "40001" || SQLiteCode(err) == sqlite3.SQLITE_BUSY_SNAPSHOT || isMySQL(err, 1020, 3101)
}

// IsTimeout reports that a lock wait ([IsBusy], without the stale snapshot) or a statement timed
// out.
func IsTimeout(err error) bool {
	return IsBusy(err) && !IsSerialization(err) || SQLState(err) == "57014" || isMySQL(err, 1969, 3024)
}

// IsNotNullViolation reports a null where the table allows none.
func IsNotNullViolation(err error) bool {
	return SQLiteCode(err) == sqlite3.SQLITE_CONSTRAINT_NOTNULL || SQLState(err) == "23502" || isNotNullMySQL(err)
}

// IsInvalidData reports a value that its column cannot hold (PostgreSQL's class 22, SQLite's STRICT
// tables).
func IsInvalidData(err error) bool {
	if state := SQLState(err); state != "" {
		return state[:2] == "22" && state != "22P04"
	}
	switch code := SQLiteCode(err); code & 0xff {
	case sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG:
		return true
	default:
		return code == sqlite3.SQLITE_CONSTRAINT_DATATYPE || isInvalidMySQL(err)
	}
}

// IsNoConnection reports that the connection was lost ([IsConnectionLost]), or that the server has
// none left (53300).
func IsNoConnection(err error) bool {
	if state := SQLState(err); state != "" {
		return state == "53300" || IsConnectionLost(err)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, pgconn.ErrConnClosed) || isLostMySQL(err) || isMySQL(err, 1040, 1203)
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
	return isMySQL(err, 1021, 1030, 1114)
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
	switch mysqlClass(err) {
	case "0A", "21", "22", "42":
		return true
	}
	return false
}

// Position returns the character, from 1, at which PostgreSQL found a fault; 0 if it named none.
func Position(err error) int {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return int(e.Position)
	}
	return 0
}
