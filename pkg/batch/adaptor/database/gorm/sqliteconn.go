package gormdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Reads on a reader, writes on the writer: see the package documentation.
type sqliteConn struct{ file *sqliteFile }

var _ tx.Conn = sqliteConn{}

// free refuses a write that would wait for its own caller (rule T3).
func (c sqliteConn) free(ctx context.Context) error {
	if tx.WriterHeld(ctx, c.file.name) {
		return fmt.Errorf("write outside the transaction: %w", tx.ErrSingleWriter)
	}
	return nil
}

func (c sqliteConn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := c.free(ctx); err != nil {
		return nil, err
	}
	if isScript(query) {
		return c.script(ctx, query, args)
	}
	return whileBusy(ctx, func() (sql.Result, error) {
		return poolConn{c.file.writer, explainSQLite}.ExecContext(ctx, query, args...)
	})
}

// One transaction: otherwise BUSY in the middle could not be repeated, and PostgreSQL does the same.
func (c sqliteConn) script(ctx context.Context, query string, args []any) (sql.Result, error) {
	h, err := c.file.begin(ctx, tx.Attr{})
	if err != nil {
		return nil, err
	}
	result, err := h.c.ExecContext(ctx, query, args...)
	if err != nil {
		return nil, errors.Join(err, h.Rollback())
	}
	return result, h.Commit()
}

func (c sqliteConn) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	p, err := c.route(ctx, query)
	if err != nil {
		return nil, err
	}
	return whileBusy(ctx, func() (*sql.Stmt, error) { return p.PrepareContext(ctx, query) })
}

func (c sqliteConn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	p, err := c.route(ctx, query)
	if err != nil {
		return nil, err
	}
	return whileBusy(ctx, func() (*sql.Rows, error) { return p.QueryContext(ctx, query, args...) })
}

func (c sqliteConn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	p, err := c.route(ctx, query)
	if err != nil {
		return p.QueryRowContext(failed{ctx, err}, query)
	}
	row, err := whileBusy(ctx, func() (*sql.Row, error) {
		row := p.QueryRowContext(ctx, query, args...)
		return row, row.Err()
	})
	if err != nil && row.Err() == nil {
		return p.QueryRowContext(failed{ctx, err}, query)
	}
	return row
}

// Raw gets the writer's connection, since f may write.
func (c sqliteConn) Raw(ctx context.Context, f func(driverConn any) error) error {
	if err := c.free(ctx); err != nil {
		return err
	}
	return poolConn{c.file.writer, explainSQLite}.Raw(ctx, f)
}

func (c sqliteConn) route(ctx context.Context, query string) (poolConn, error) {
	if reads(query) {
		return poolConn{c.file.readers, explainSQLite}, nil
	}
	return poolConn{c.file.writer, explainSQLite}, c.free(ctx)
}
