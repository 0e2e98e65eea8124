package migrator

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	migratedb "github.com/golang-migrate/migrate/v4/database"
	pgxmigrate "github.com/golang-migrate/migrate/v4/database/pgx/v5"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// postgresDriver is the library's, on a pool of one connection, whose statement in
// progress is cancelled when ctx ends.
type postgresDriver struct {
	migratedb.Driver
	stop func() error
}

// Close waits for a cancellation in progress and closes the pool.
func (d *postgresDriver) Close() error { return errors.Join(d.stop(), d.Driver.Close()) }

// cancelTime bounds the request that cancels a statement.
const cancelTime = 10 * time.Second

func newPostgres(ctx context.Context, db tx.Database, o Options) (_ migratedb.Driver, err error) {
	pool, err := db.Open()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, pool.Close())
		}
	}()
	pool.SetMaxOpenConns(1) // the settings below are the session's
	pool.SetMaxIdleConns(1)
	var pid int
	if err := pool.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	timeout := fmt.Sprintf("SET lock_timeout = %d", o.LockTimeout.Milliseconds())
	if _, err := pool.ExecContext(ctx, timeout); err != nil {
		return nil, fmt.Errorf("set lock_timeout: %w", err)
	}
	stop := cancelBackend(ctx, db, pid)
	driver, err := pgxmigrate.WithInstance(pool, &pgxmigrate.Config{
		MigrationsTable:       quoted(o.Table),
		MigrationsTableQuoted: true,
	})
	if err != nil {
		if cerr := ctx.Err(); cerr != nil {
			err = errors.Join(cerr, err)
		}
		return nil, errors.Join(err, stop())
	}
	return &postgresDriver{Driver: driver, stop: stop}, nil
}

// quoted writes the table as the library wants it: "schema"."table".
func quoted(table string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(table, `"`, ``), ".", `"."`) + `"`
}

// cancelBackend cancels the session's statement when ctx ends, over another
// session. The function that it returns calls that off, or waits for its end.
func cancelBackend(ctx context.Context, db tx.Database, pid int) (stop func() error) {
	done := make(chan error, 1)
	off := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
		defer cancel()
		done <- withPool(db, func(pool *sql.DB) error {
			_, err := pool.ExecContext(ctx, "SELECT pg_cancel_backend($1)", pid)
			return err
		})
	})
	return func() error {
		if off() {
			return nil
		}
		if err := <-done; err != nil {
			return fmt.Errorf("cancel the migration's statement: %w", err)
		}
		return nil
	}
}

func withPool(db tx.Database, f func(*sql.DB) error) error {
	pool, err := db.Open()
	if err != nil {
		return err
	}
	return errors.Join(f(pool), pool.Close())
}
