package gormdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
)

const (
	keptStatements   = 100
	longestStatement = 4096
)

// preparedStmts has the unused prepared statements of a connection to SQLite, by text: planning one takes
// longer than running it. SQLite itself prepares a statement again for another schema. Each is used by one
// caller at a time, and closed after it failed. pgx does the same for PostgreSQL.
type preparedStmts map[string]preparedStmt

type preparedStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// A pragma may do its work while it is prepared.
func keepsPrepared(query string) bool {
	if len(query) > longestStatement || strings.IndexByte(query, ';') >= 0 {
		return false
	}
	keeps := false
	words(query, func(word string) bool {
		switch word {
		case "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "VALUES":
			keeps = true
		}
		return false
	})
	return keeps
}

func (k preparedStmts) take(ctx context.Context, conn modernc, query string) (preparedStmt, error) {
	if stmt, ok := k[query]; ok {
		delete(k, query)
		return stmt, nil
	}
	stmt, err := conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	prepared, ok := stmt.(preparedStmt)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the statement is a %T, not one of modernc.org/sqlite", stmt), stmt.Close())
	}
	return prepared, nil
}

func (k preparedStmts) put(query string, stmt preparedStmt) error {
	if _, ok := k[query]; ok {
		return stmt.Close()
	}
	if len(k) >= keptStatements {
		for text, other := range k {
			delete(k, text)
			if err := other.Close(); err != nil {
				return errors.Join(err, stmt.Close())
			}
			break
		}
	}
	k[query] = stmt
	return nil
}

// SQLite keeps the file of a connection open while it has statements.
func (k preparedStmts) close() error {
	var errs []error
	for text, stmt := range k {
		delete(k, text)
		errs = append(errs, stmt.Close())
	}
	return errors.Join(errs...)
}

func (k preparedStmts) exec(ctx context.Context, conn modernc, query string, args []driver.NamedValue) (driver.Result, error) {
	stmt, err := k.take(ctx, conn, query)
	if err != nil {
		return nil, err
	}
	result, err := stmt.ExecContext(ctx, args)
	if err != nil {
		_ = stmt.Close() //nolint:errcheck // it says again what has failed
		return nil, err
	}
	return result, k.put(query, stmt)
}

func (k preparedStmts) query(ctx context.Context, conn modernc, query string, args []driver.NamedValue) (driver.Rows, error) {
	stmt, err := k.take(ctx, conn, query)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(ctx, args)
	if err != nil {
		_ = stmt.Close() //nolint:errcheck // it says again what has failed
		return nil, err
	}
	typed, ok := rows.(typedRows)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the rows are %T, not those of modernc.org/sqlite", rows), rows.Close(), stmt.Close())
	}
	return &preparedRows{typed, func(err error) error {
		if err != nil {
			_ = stmt.Close() //nolint:errcheck // likewise
			return err
		}
		return k.put(query, stmt)
	}}, nil
}

type typedRows interface {
	driver.Rows
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypeLength
	driver.RowsColumnTypeNullable
	driver.RowsColumnTypePrecisionScale
	driver.RowsColumnTypeScanType
}

type preparedRows struct {
	typedRows
	giveBack func(err error) error
}

// database/sql calls Close once or more.
func (r *preparedRows) Close() error {
	if r.giveBack == nil {
		return nil
	}
	giveBack := r.giveBack
	r.giveBack = nil
	return giveBack(r.typedRows.Close())
}

type modernc interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	RegisterCommitHook(hook sqlite.CommitHookFn)
	RegisterRollbackHook(hook sqlite.RollbackHookFn)
}
