package gormdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Lent is a pool lent by [Lend].
type Lent struct {
	db    *sql.DB
	pool  *pgxpool.Pool
	given bool
}

// Lend makes a pool of the application, a *sql.DB of pgx's stdlib or of modernc.org/sqlite, or a *pgxpool.Pool,
// the Config.Lent of a database. The application closes it, after [DBProvider.Close].
//
// On PostgreSQL, work with data borrows connections. An unused one goes back after a second or two, with
// the original settings of its session; if a step may have changed its session, it is closed instead (rule
// T8b). The control pool (rule R6) and migrations open their own connections, with the configuration of the
// pool and the settings (search_path, role) of one of its sessions: BeforeConnect and AfterConnect of a
// *pgxpool.Pool are called for them, a *sql.DB does not show its own. A pooler in front of the server must
// be in session mode (rule R9).
//
// On SQLite only the file, in WAL mode, is taken from the pool: SQLite and its driver fix the settings that
// the rules need (one immediate writer, readers that cannot write, UTC) when a connection is opened.
func Lend[P *sql.DB | *pgxpool.Pool](pool P) Lent {
	lent := Lent{given: true}
	switch p := any(pool).(type) {
	case *sql.DB:
		lent.db = p
	case *pgxpool.Pool:
		lent.pool = p
	}
	return lent
}

func (l Lent) dialect() (tx.Dialect, error) {
	switch {
	case l.pool != nil:
		return tx.Postgres, nil
	case l.db == nil:
		return "", errors.New("the pool of the application is nil")
	}
	switch d := l.db.Driver().(type) {
	case *stdlib.Driver:
		return tx.Postgres, nil
	case *sqlite.Driver:
		return tx.SQLite, nil
	default:
		return "", fmt.Errorf("the pool of the application has the driver %T (allowed: pgx's stdlib and modernc.org/sqlite, not wrapped by another one)", d)
	}
}

func (l Lent) limit() int {
	if l.pool != nil {
		return int(l.pool.Config().MaxConns)
	}
	return l.db.Stats().MaxOpenConnections
}

func (l Lent) acquire(ctx context.Context) (_ *stdlib.Conn, giveBack func() error, err error) {
	if l.pool != nil {
		made, err := stdlib.GetPoolConnector(l.pool).Connect(ctx)
		if err != nil {
			return nil, nil, err
		}
		own, ok := made.(*stdlib.Conn)
		if !ok {
			return nil, nil, errors.Join(fmt.Errorf("the connection is a %T, not one of pgx", made), made.Close())
		}
		return own, own.Close, nil
	}
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return nil, nil, err
	}
	var own *stdlib.Conn
	err = conn.Raw(func(driverConn any) error {
		var ok bool
		if own, ok = driverConn.(*stdlib.Conn); !ok {
			return fmt.Errorf("the connection is a %T, not one of pgx", driverConn)
		}
		return nil
	})
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return own, func() error {
		if !own.Conn().IsClosed() {
			return conn.Close()
		}
		// Otherwise database/sql keeps the closed connection for the next caller.
		if err := conn.Raw(func(any) error { return driver.ErrBadConn }); !errors.Is(err, driver.ErrBadConn) {
			return errors.Join(err, conn.Close())
		}
		return nil
	}, nil
}
