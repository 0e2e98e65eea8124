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
	shadow(ctx context.Context, conn tx.Conn, table, shadow string, columns []string) error
	exclude(ctx context.Context, conn tx.Conn, table string) error
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
