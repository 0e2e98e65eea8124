package gormdb

import (
	"context"
	"database/sql/driver"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"
)

// A statement that is cancelled is cancelled at the server, so that the transaction can
// roll back to a savepoint. Connections of our own are configured so. What the pool of an
// application is configured to, usually, is to give the connection up: on a borrowed one
// the statement runs without its context, which is watched here.

func (c *pgConn) execBorrowed(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	done, err := c.watch(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return c.Conn.ExecContext(context.WithoutCancel(ctx), query, args)
}

func (c *pgConn) queryBorrowed(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	done, err := c.watch(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := c.Conn.QueryContext(context.WithoutCancel(ctx), query, args)
	if err != nil {
		done()
		return nil, err
	}
	own, ok := rows.(*stdlib.Rows)
	if !ok {
		done()
		return rows, nil
	}
	return &watchedRows{own, done}, nil
}

// watch asks the server to cancel what runs when ctx ends, until done is called.
func (c *pgConn) watch(ctx context.Context) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := ctxwatch.NewContextWatcher(&pgconn.CancelRequestContextWatcherHandler{Conn: c.Conn.Conn().PgConn(), DeadlineDelay: cancelTime})
	w.Watch(ctx)
	return w.Unwatch, nil
}

// watchedRows are rows whose statement is watched until they are closed.
type watchedRows struct {
	*stdlib.Rows
	done func()
}

// Close closes the rows.
func (r *watchedRows) Close() error {
	defer r.done()
	return r.Rows.Close()
}
