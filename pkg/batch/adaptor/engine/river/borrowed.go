package river

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// borrowed shows a connection in a transaction of ours as a transaction of pgx, which it cannot end.
type borrowed struct {
	conn *pgx.Conn
	// 0 means the transaction itself
	savepoint int
}

var _ pgx.Tx = (*borrowed)(nil)

func (b *borrowed) name() string { return fmt.Sprintf("surfin_river_%d", b.savepoint) }

func (b *borrowed) Begin(ctx context.Context) (pgx.Tx, error) {
	inner := &borrowed{conn: b.conn, savepoint: b.savepoint + 1}
	if _, err := b.conn.Exec(ctx, "SAVEPOINT "+inner.name()); err != nil {
		return nil, err
	}
	return inner, nil
}

// Commit releases the savepoint.
func (b *borrowed) Commit(ctx context.Context) error {
	if b.savepoint == 0 {
		return tx.ErrNotOwner
	}
	_, err := b.conn.Exec(ctx, "RELEASE SAVEPOINT "+b.name())
	return err
}

func (b *borrowed) Rollback(ctx context.Context) error {
	if b.savepoint == 0 {
		return tx.ErrNotOwner
	}
	_, err := b.conn.Exec(ctx, "ROLLBACK TO SAVEPOINT "+b.name())
	return err
}

func (b *borrowed) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	return b.conn.CopyFrom(ctx, table, columns, rows)
}

func (b *borrowed) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	return b.conn.SendBatch(ctx, batch)
}

func (b *borrowed) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

func (b *borrowed) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	return b.conn.Prepare(ctx, name, sql)
}

func (b *borrowed) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return b.conn.Exec(ctx, sql, args...)
}

func (b *borrowed) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return b.conn.Query(ctx, sql, args...)
}

func (b *borrowed) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return b.conn.QueryRow(ctx, sql, args...)
}

func (b *borrowed) Conn() *pgx.Conn { return b.conn }
