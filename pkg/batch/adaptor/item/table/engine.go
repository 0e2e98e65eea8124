package table

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type engine interface {
	// describe returns no columns if the table is absent.
	describe(ctx context.Context, conn tx.Conn, table string) (relation, error)
	typeName(kind row.Kind) string
	oneByOne(create string) string
	newBatch() batch
	refill(ctx context.Context, conn tx.Conn, table string) (refillable, error)
	empty(ctx context.Context, conn tx.Conn, table string, r refillable) error
	// shadow makes the table for the new rows, without rows, and returns its name.
	shadow(ctx context.Context, conn tx.Conn, table, shadow string, columns []string) (string, error)
	exclude(ctx context.Context, conn tx.Conn, table string) error
	// keys makes a table of these columns, without rows, and returns its name.
	keys(ctx context.Context, conn tx.Conn, table, columns string) (string, error)
}

// freshTable replaces a table in the transaction.
func freshTable(ctx context.Context, conn tx.Conn, dialect tx.Dialect, table, columns string) (string, error) {
	to := dialect.Quote(table)
	for _, statement := range []string{"drop table if exists " + to, "create table " + to + " (" + columns + ")"} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return "", err
		}
	}
	return table, nil
}

type batch interface {
	// encode replaces the content by the records (not empty). The plan may be
	// in use on another goroutine: it is not changed.
	encode(p *plan, records [][]row.Value) error
	send(ctx context.Context, conn tx.Conn, p *plan) error
	// forget drops the records.
	forget()
}

type refillable struct {
	isTable    bool
	referredBy []string
	toItself   bool
}
