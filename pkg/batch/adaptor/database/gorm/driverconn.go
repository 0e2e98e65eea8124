package gormdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// physical is the driver's connection, with a record of its statements.
type physical interface {
	driver.Conn
	// lend calls f with the driver's connection, or one that can do the same.
	lend(ctx context.Context, f func(driverConn any) error) error
	// note notes a statement before it runs ("" is an unknown one), and may refuse it.
	note(ctx context.Context, query string) error
	// opensBy sets how to replace a session that was given up.
	opensBy(open func(ctx context.Context) (driver.Conn, error))
}

type connector struct {
	driver.Connector
	wrap func(c driver.Conn) (physical, error)
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	wrapped, err := c.wrap(conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	wrapped.opensBy(c.Connector.Connect)
	return wrapped, nil
}

// The caller must hold conn.
func physicalOf[T physical](conn *sql.Conn) (p T, err error) {
	err = conn.Raw(func(driverConn any) error {
		var ok bool
		if p, ok = driverConn.(T); !ok {
			return fmt.Errorf("the connection is a %T, not a %T", driverConn, p)
		}
		return nil
	})
	return p, err
}

// raw hides f's error and panic from database/sql, which would otherwise, at driver.ErrBadConn or a panic,
// close the connection and wait for the end of the open transaction, forever.
func raw(ctx context.Context, conn *sql.Conn, f func(driverConn any) error) error {
	var ferr error
	var panicked any
	err := conn.Raw(func(driverConn any) error {
		defer func() { panicked = recover() }()
		if p, ok := driverConn.(physical); ok {
			if ferr = p.note(ctx, tx.RunningIn(ctx)); ferr == nil {
				ferr = p.lend(ctx, f)
			}
			return nil
		}
		ferr = f(driverConn)
		return nil
	})
	if panicked != nil {
		panic(panicked)
	}
	if err != nil {
		return err
	}
	return withoutBadConn(ferr)
}

// failed is a context that passes an error to the scan of a *sql.Row.
type failed struct {
	context.Context
	err error
}

func (f failed) Err() error { return f.err }

func (f failed) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}
