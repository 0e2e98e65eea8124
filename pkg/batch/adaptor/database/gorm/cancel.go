package gormdb

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"
)

// A cancelled statement is cancelled at the server, so that the transaction can roll back to a savepoint.
// The pool of an application usually gives the connection up instead: on a borrowed connection the
// statement runs without its context, which is watched here.

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

func (c *pgConn) watch(ctx context.Context) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := ctxwatch.NewContextWatcher(&canceller{conn: c.Conn.Conn().PgConn(), answer: c.answer})
	w.Watch(ctx)
	return w.Unwatch, nil
}

type watchedRows struct {
	*stdlib.Rows
	done func()
}

func (r *watchedRows) Close() error {
	defer r.done()
	return r.Rows.Close()
}

// canceller asks the server to cancel the running statement when its context ends. It repeats the request,
// since a server that has not yet begun the statement forgets it. After the time of answer the connection
// is lost.
type canceller struct {
	conn   *pgconn.PgConn
	answer time.Duration
	ended  chan struct{}
	done   chan struct{}
}

const (
	cancelAgain = 250 * time.Millisecond
	// A busy machine may deliver an answered request late, and cancel the next statement.
	cancelRest = 100 * time.Millisecond
)

func (c *canceller) HandleCancel(context.Context) {
	deadline := time.Now().Add(c.answer)
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	c.ended, c.done = make(chan struct{}), make(chan struct{})
	c.setDeadline(deadline)
	go func() {
		defer close(c.done)
		defer cancel()
		for {
			_ = c.conn.CancelRequest(ctx) //nolint:errcheck // the statement itself reports the end
			time.Sleep(cancelRest)
			select {
			case <-c.ended:
				return
			case <-ctx.Done():
				return
			case <-time.After(cancelAgain - cancelRest):
			}
		}
	}()
}

// HandleUnwatchAfterCancel waits for a sent request, so that it does not hit the next statement.
func (c *canceller) HandleUnwatchAfterCancel() {
	close(c.ended)
	<-c.done
	c.setDeadline(time.Time{})
}

// If this fails, reads and writes fail too.
func (c *canceller) setDeadline(at time.Time) {
	_ = c.conn.Conn().SetDeadline(at) //nolint:errcheck // see above
}
