package query

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/surfin-batch/surfin/internal/pgxconn"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type postgresCursor struct {
	page *postgresPage
	conn tx.Conn
	name string
}

func (e *postgres) cursor(ctx context.Context, conn tx.Conn, columns []resultColumn, text string, args []any) (cursor, error) {
	e.page.columns = columns
	c := &postgresCursor{page: &e.page, conn: conn, name: quoted("surfin_" + rand.Text()[:8])}
	statement := fmt.Sprintf("declare %s no scroll cursor for %s", c.name, text)
	err := pgxconn.Run(ctx, conn, statement, func(p *pgx.Conn) error {
		_, err := p.Exec(ctx, statement, append([]any{pgx.QueryExecModeDescribeExec}, args...)...)
		return err
	})
	return c, err
}

func (c *postgresCursor) next(ctx context.Context, n int) (page, error) {
	statement := fmt.Sprintf("fetch forward %d from %s", n, c.name)
	err := pgxconn.Run(ctx, c.conn, statement, func(p *pgx.Conn) error {
		return c.page.fill(p.Query(ctx, statement, binaryFormats(), pgx.QueryExecModeDescribeExec))
	})
	return c.page, err
}

func (c *postgresCursor) close() error { return nil }
