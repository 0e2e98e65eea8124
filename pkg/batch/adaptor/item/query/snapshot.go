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
	if r.db.Dialect() == tx.Postgres { // SQLite's is a snapshot anyway
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

// refuseResume refuses a restart if rows of a snapshot were or are to be read (rule C15m).
func refuseResume(p position) error {
	switch {
	case p.Read == 0:
		return nil
	case p.Snapshot:
		return fmt.Errorf("cannot restart: %d rows of a snapshot were read, and without a key they cannot be told from the others: "+
			"--from-start reads all rows again, but rows that the step has committed stay, so a target of mode insert would have them twice: "+
			"empty the target first, or write in mode upsert or replace", p.Read)
	}
	return fmt.Errorf("cannot restart: the last commit was at a key, but a snapshot is read from its beginning: restore the key, or restart with --from-start " +
		"after emptying the target, as rows that the step has committed stay")
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
