package migrator

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	migratedb "github.com/golang-migrate/migrate/v4/database"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/surfin-batch/surfin/internal/sqlscript"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// postgresDriver runs a migration and its version in one transaction (rule T7a). The library's own
// driver leaves a dirty version if the process dies in between.
type postgresDriver struct {
	ctx     context.Context // the library's interface takes none
	pool    *sql.DB
	conn    *sql.Conn
	table   string // quoted, with its schema: a migration may set search_path
	lockID  string
	timeout time.Duration

	found    *HalfWay // where an earlier migration had ended; nil means nowhere, or unknown
	version  int      // that the table records
	target   int      // the result of the current migration
	recorded bool     // the migration has committed with its version
}

var _ migratedb.Driver = (*postgresDriver)(nil)

// Waiting in the server would hold a snapshot, for which CREATE INDEX CONCURRENTLY waits in turn.
const poll = 50 * time.Millisecond

func newPostgres(ctx context.Context, db tx.Database, table string, timeout time.Duration) (_ *postgresDriver, err error) {
	pool, err := db.Open()
	if err != nil {
		return nil, err
	}
	d := &postgresDriver{ctx: ctx, pool: pool, timeout: timeout, version: migratedb.NilVersion}
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

func (d *postgresDriver) Open(string) (migratedb.Driver, error) {
	return nil, errors.New("the migrations' driver is not opened by URL")
}

func (d *postgresDriver) Close() error {
	var err error
	if d.conn != nil {
		err = d.conn.Close()
	}
	return errors.Join(err, d.pool.Close())
}

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

// A dirty version with a recorded end is the error: the library's error would only have the number.
func (d *postgresDriver) Version() (version int, dirty bool, err error) {
	d.version, d.found = migratedb.NilVersion, nil
	var place string
	// A table of the library's own lacks the column.
	err = d.conn.QueryRowContext(d.ctx, "SELECT version, dirty, coalesce(to_jsonb(t)->>'half_way', '') FROM "+d.table+" t LIMIT 1").
		Scan(&d.version, &dirty, &place)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return d.version, false, nil
	case err != nil:
		return 0, false, err
	}
	if dirty {
		at, err := halfWay(place)
		if at != nil || err != nil {
			return d.version, true, errors.Join(&DirtyError{Version: d.version, At: at}, err)
		}
	}
	return d.version, dirty, nil
}

// SetVersion opens a migration if dirty, writing nothing yet; else it records a version that no
// migration has recorded.
func (d *postgresDriver) SetVersion(version int, dirty bool) error {
	if dirty {
		d.target, d.recorded = version, false
		return nil
	}
	if d.recorded && version == d.target {
		d.recorded = false
		return nil
	}
	d.version = version
	return d.inTransaction(func(t *sql.Tx) error { return d.record(t, version, nil) })
}

func (d *postgresDriver) Run(migration io.Reader) error {
	script, err := readScript(migration, tx.Postgres)
	if err != nil {
		return towards(d.target, err)
	}
	if err := d.run(script); err != nil {
		if _, dirty := errors.AsType[*DirtyError](err); dirty {
			return err
		}
		return towards(d.target, err)
	}
	d.version, d.recorded = d.target, true
	return nil
}

// run runs as many statements as possible in one transaction, then one that may not run in it; only
// from there on is the version dirty.
func (d *postgresDriver) run(s script) error {
	for next := 0; ; next++ {
		from := next
		var err error
		if next, err = d.together(s, next); err != nil {
			if from == 0 {
				return err // nothing has happened
			}
			return d.stay(s, from, err)
		}
		if next == len(s.statements) {
			return nil
		}
		if err := d.exec(s.statements[next].Text); err != nil {
			return &DirtyError{Version: d.target, At: d.place(s, next, true), Err: s.at(s.statements[next], err)}
		}
		if next+1 == len(s.statements) {
			continue
		}
		if err := d.mark(d.place(s, next+1, false)); err != nil {
			return &DirtyError{Version: d.target, At: d.place(s, next, true), Err: err}
		}
	}
}

const step = "surfin_statement"

// together runs statements in one transaction, which records the version, or the next statement.
// After a savepoint of the file there is none.
func (d *postgresDriver) together(s script, from int) (next int, err error) {
	next = from
	err = d.inTransaction(func(t *sql.Tx) error {
		own := false
		for ; next < len(s.statements); next++ {
			stmt := s.statements[next]
			own = own || stmt.Verb == "SAVEPOINT"
			// SET TRANSACTION is refused after a savepoint; no SET needs one.
			refused, err := d.try(t, stmt, !own && stmt.Verb != "SET")
			if refused {
				return d.record(t, d.target, d.place(s, next, true))
			}
			if err != nil {
				return s.at(stmt, err)
			}
		}
		return d.record(t, d.target, nil)
	})
	return next, err
}

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

func (d *postgresDriver) stay(s script, next int, err error) error {
	at := d.place(s, min(next, len(s.statements)-1), next == len(s.statements))
	return &DirtyError{Version: d.target, At: at, Err: err}
}

func (d *postgresDriver) place(s script, n int, alone bool) *HalfWay {
	stmt := s.statements[n]
	return &HalfWay{From: d.version, To: d.target, Line: stmt.Line, Statement: stmt.Text, Alone: alone}
}

func (d *postgresDriver) mark(at *HalfWay) error {
	return d.inTransaction(func(t *sql.Tx) error { return d.record(t, d.target, at) })
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

func (d *postgresDriver) inTransaction(f func(t *sql.Tx) error) error {
	t, err := d.conn.BeginTx(context.WithoutCancel(d.ctx), nil)
	if err != nil {
		return err
	}
	if err := f(t); err != nil {
		return errors.Join(err, t.Rollback())
	}
	return t.Commit()
}

func (d *postgresDriver) Drop() error {
	return errors.New("dropping a whole database is not supported")
}

func (d *postgresDriver) exec(statement string) error {
	_, err := d.conn.ExecContext(d.ctx, statement)
	return err
}
