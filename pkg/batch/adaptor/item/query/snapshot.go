package query

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// For a snapshot, the connection has a transaction, which ends with Close and not with a chunk.
func (r *reader) connect(ctx context.Context) (tx.Conn, error) {
	if !r.config.Snapshot {
		return r.db.Conn(), nil
	}
	attr := tx.Attr{ReadOnly: true}
	if r.db.Dialect() != tx.SQLite { // there it is a snapshot anyway
		attr.Isolation = sql.LevelRepeatableRead
	}
	var err error
	if r.snapshot, err = r.db.Begin(ctx, attr); err != nil {
		return nil, fmt.Errorf("begin a snapshot: %w", err)
	}
	r.release = tx.Hold(ctx, r.db.Name())
	return r.snapshot.Conn(), nil
}

func (r *reader) conn() tx.Conn {
	if r.snapshot != nil {
		return r.snapshot.Conn()
	}
	return r.db.Conn()
}

func (r *reader) declare(ctx context.Context) error {
	outputs := make([]string, len(r.columns))
	for i := range r.columns {
		outputs[i] = r.engine.output(&r.columns[i])
	}
	text := fmt.Sprintf("select %s from (\n%s\n) q", strings.Join(outputs, ", "), r.sql)
	var err error
	r.cursor, err = r.engine.cursor(context.WithoutCancel(ctx), r.snapshot.Conn(), r.columns, text, r.args)
	return r.explain(text, err)
}

func (r *reader) fetchSnapshot(ctx context.Context) error {
	p, err := r.cursor.next(ctx, r.config.Fetch)
	if err != nil {
		return r.explain("", err)
	}
	r.page, r.at, r.limit = p, 0, p.len()
	r.last = p.len() < r.config.Fetch
	return nil
}

// Close ends the snapshot.
func (r *reader) Close(context.Context) (err error) {
	if r.cursor != nil {
		err = r.cursor.close()
	}
	if r.snapshot != nil {
		if failed := r.snapshot.Rollback(); err == nil {
			err = failed
		}
		r.release()
	}
	r.cursor, r.snapshot = nil, nil
	if err != nil {
		return fmt.Errorf("query: end the snapshot: %w", err)
	}
	return nil
}
