package migrator

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	migratedb "github.com/golang-migrate/migrate/v4/database"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/surfin-batch/surfin/internal/sqlscript"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// postgresDriver records a version in the transaction of its migration. The library's own driver
// leaves a dirty version if the process dies in between.
type postgresDriver struct {
	stepwise
	table   string // quoted, with its schema: a migration may set search_path
	lockID  string
	timeout time.Duration
}

var _ migratedb.Driver = (*postgresDriver)(nil)

// Waiting in the server would hold a snapshot, for which CREATE INDEX CONCURRENTLY waits in turn.
const poll = 50 * time.Millisecond

func newPostgres(ctx context.Context, db tx.Database, table string, timeout time.Duration) (_ *postgresDriver, err error) {
	pool, err := db.Open()
	if err != nil {
		return nil, err
	}
	d := &postgresDriver{timeout: timeout}
	d.stepwise = stepwise{ctx: ctx, pool: pool, own: d, version: migratedb.NilVersion}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if d.conn, err = pool.Conn(ctx); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if err := d.exec(fmt.Sprintf("SET lock_timeout = %d", timeout.Milliseconds())); err != nil {
		return nil, fmt.Errorf("set lock_timeout: %w", err)
	}
	if err := d.watchClient(); err != nil {
		return nil, err
	}
	if err := d.locate(table); err != nil {
		return nil, err
	}
	return d, nil
}

// watchClient makes the server end a statement after its client died, so that its locks do not
// outlive it.
func (d *postgresDriver) watchClient() error {
	err := d.exec("SELECT set_config(name, '1s', false) FROM pg_settings WHERE name = 'client_connection_check_interval'")
	const invalidParameterValue = "22023"
	if err != nil && code(err) != invalidParameterValue {
		return fmt.Errorf("set client_connection_check_interval: %w", err)
	}
	return nil
}

// locate finds the table's schema, and the lock that the library's programs also take.
func (d *postgresDriver) locate(table string) error {
	schema, name, ok := strings.Cut(table, ".")
	if !ok {
		name = table
		if err := d.conn.QueryRowContext(d.ctx, "SELECT coalesce(current_schema(), 'public')").Scan(&schema); err != nil {
			return fmt.Errorf("find the current schema: %w", err)
		}
	}
	var database string
	if err := d.conn.QueryRowContext(d.ctx, "SELECT current_database()").Scan(&database); err != nil {
		return fmt.Errorf("find the current database: %w", err)
	}
	d.table = quoted(schema) + "." + quoted(name)
	var err error
	d.lockID, err = migratedb.GenerateAdvisoryLockId(database, schema, name)
	return err
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, ``) + `"` }

func (d *postgresDriver) Lock() error {
	ctx, cancel := context.WithTimeout(d.ctx, d.timeout)
	defer cancel()
	for {
		var got bool
		if err := d.conn.QueryRowContext(d.ctx, "SELECT pg_try_advisory_lock($1::bigint)", d.lockID).Scan(&got); err != nil {
			return err
		}
		if got {
			return d.exec("CREATE TABLE IF NOT EXISTS " + d.table + " (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)")
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			if err := d.ctx.Err(); err != nil {
				return err
			}
			return migratedb.ErrLocked
		}
	}
}

func (d *postgresDriver) Unlock() error {
	_, err := d.conn.ExecContext(context.WithoutCancel(d.ctx), "SELECT pg_advisory_unlock($1::bigint)", d.lockID)
	return err
}

func (d *postgresDriver) Version() (version int, dirty bool, err error) {
	// A table of the library's own lacks the column.
	return d.read("SELECT version, dirty, coalesce(to_jsonb(t)->>'half_way', '') FROM " + d.table + " t LIMIT 1")
}

func (d *postgresDriver) dialect() tx.Dialect { return tx.Postgres }

func (d *postgresDriver) leaves(sqlscript.Statement, error) bool { return true }

const step = "surfin_statement"

// With a savepoint before it, a statement that refuses the transaction leaves it unchanged.
func (d *postgresDriver) try(t *sql.Tx, stmt sqlscript.Statement, savepoint bool) (refused bool, err error) {
	if !savepoint {
		_, err := t.ExecContext(d.ctx, stmt.Text)
		return false, err
	}
	if _, err := t.ExecContext(d.ctx, "SAVEPOINT "+step); err != nil {
		return false, err
	}
	_, err = t.ExecContext(d.ctx, stmt.Text)
	if refusesTransaction(stmt, err) {
		_, err := t.ExecContext(d.ctx, "ROLLBACK TO SAVEPOINT "+step)
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	_, err = t.ExecContext(d.ctx, "RELEASE SAVEPOINT "+step)
	return false, err
}

// CREATE INDEX CONCURRENTLY, VACUUM and others call one function of the server with the code 25001,
// which SET TRANSACTION also has; from within a function (Where) they are refused in any case.
// 2D000 is a COMMIT in a function, or in a procedure or block.
func refusesTransaction(stmt sqlscript.Statement, err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch e.Code {
	case "25001":
		return e.Routine == "PreventInTransactionBlock" && e.Where == ""
	case "2D000":
		return stmt.Verb == "CALL" || stmt.Verb == "DO"
	}
	return false
}

func code(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// As in the library, no version means no row, but a dirty one needs a row. The migration may have
// taken a role that may not write it: a version recorded half-way continues with that role.
func (d *postgresDriver) record(t *sql.Tx, version int, at *HalfWay) error {
	if _, err := t.ExecContext(d.ctx, "SET LOCAL SESSION AUTHORIZATION DEFAULT; SET LOCAL role TO DEFAULT"); err != nil {
		return err
	}
	if _, err := t.ExecContext(d.ctx, "DELETE FROM "+d.table); err != nil {
		return err
	}
	if at == nil {
		if version < 0 {
			return nil
		}
		_, err := t.ExecContext(d.ctx, "INSERT INTO "+d.table+" (version, dirty) VALUES ($1, false)", version)
		return err
	}
	place, err := at.text()
	if err != nil {
		return err
	}
	if _, err := t.ExecContext(d.ctx, "ALTER TABLE "+d.table+" ADD COLUMN IF NOT EXISTS half_way text"); err != nil {
		return err
	}
	_, err = t.ExecContext(d.ctx, "INSERT INTO "+d.table+" (version, dirty, half_way) VALUES ($1, true, $2)", version, place)
	return err
}
