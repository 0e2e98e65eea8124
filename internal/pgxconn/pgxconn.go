// Package pgxconn lends pgx's own connection, for operations that database/sql lacks: COPY, values in binary
// form, and texts of several statements.
//
// It imports tx and the driver.
package pgxconn

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Run calls f with conn's pgx connection, which f must not keep; statement is for [tx.Running]. It
// fails if conn is not pgx.
func Run(ctx context.Context, conn tx.Conn, statement string, f func(c *pgx.Conn) error) error {
	return conn.Raw(tx.Running(ctx, statement), func(driverConn any) error {
		c, ok := driverConn.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("the connection is a %T, not one of pgx", driverConn)
		}
		return f(c.Conn())
	})
}
