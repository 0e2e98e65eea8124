package migrator

import (
	"context"
	"database/sql"
	"errors"
	"io"

	migratedb "github.com/golang-migrate/migrate/v4/database"

	"github.com/surfin-batch/surfin/internal/sqlscript"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// stepwise runs a migration and its version in one transaction, as far as its statements allow it (rule T7a).
type stepwise struct {
	ctx  context.Context // the library's interface takes none
	pool *sql.DB
	conn *sql.Conn
	own  statements

	version  int  // that the table records
	target   int  // the result of the current migration
	recorded bool // the migration has committed with its version
}

// statements are the differences between databases.
type statements interface {
	dialect() tx.Dialect
	// try runs a statement in a transaction; it is without effect if the statement refuses one.
	try(t *sql.Tx, stmt sqlscript.Statement, savepoint bool) (refused bool, err error)
	// record replaces the version; at is nil unless it is dirty.
	record(t *sql.Tx, version int, at *HalfWay) error
	// leaves reports whether a statement that failed outside of a transaction may have had an effect.
	leaves(stmt sqlscript.Statement, err error) bool
}

func (d *stepwise) Open(string) (migratedb.Driver, error) {
	return nil, errors.New("the migrations' driver is not opened by URL")
}

func (d *stepwise) Close() error {
	var err error
	if d.conn != nil {
		err = d.conn.Close()
	}
	return errors.Join(err, d.pool.Close())
}

// A dirty version with a recorded end is the error: the library's error would only have the number.
func (d *stepwise) read(query string) (version int, dirty bool, err error) {
	d.version = migratedb.NilVersion
	var place string
	err = d.conn.QueryRowContext(d.ctx, query).Scan(&d.version, &dirty, &place)
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
func (d *stepwise) SetVersion(version int, dirty bool) error {
	if dirty {
		d.target, d.recorded = version, false
		return nil
	}
	if d.recorded && version == d.target {
		d.recorded = false
		return nil
	}
	d.version = version
	return d.inTransaction(func(t *sql.Tx) error { return d.own.record(t, version, nil) })
}

func (d *stepwise) Run(migration io.Reader) error {
	script, err := readScript(migration, d.own.dialect())
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
func (d *stepwise) run(s script) error {
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
			return d.failed(s, next, err)
		}
		if next+1 == len(s.statements) {
			continue
		}
		if err := d.mark(d.place(s, next+1, false)); err != nil {
			return &DirtyError{Version: d.target, At: d.place(s, next, true), Err: err}
		}
	}
}

// together runs statements in one transaction, which records the version, or the next statement.
// After a savepoint of the file there is none.
func (d *stepwise) together(s script, from int) (next int, err error) {
	next = from
	err = d.inTransaction(func(t *sql.Tx) error {
		own := false
		for ; next < len(s.statements); next++ {
			stmt := s.statements[next]
			own = own || stmt.Verb == "SAVEPOINT"
			// SET TRANSACTION is refused after a savepoint; no SET needs one.
			refused, err := d.own.try(t, stmt, !own && stmt.Verb != "SET")
			if refused {
				return d.own.record(t, d.target, d.place(s, next, true))
			}
			if err != nil {
				return s.at(stmt, err)
			}
		}
		return d.own.record(t, d.target, nil)
	})
	return next, err
}

// failed follows a statement that failed outside of a transaction.
func (d *stepwise) failed(s script, n int, err error) error {
	stmt := s.statements[n]
	left := d.own.leaves(stmt, err)
	err = s.at(stmt, err)
	if left {
		return &DirtyError{Version: d.target, At: d.place(s, n, true), Err: err}
	}
	at := d.place(s, n, false)
	if n == 0 {
		return errors.Join(err, d.inTransaction(func(t *sql.Tx) error { return d.own.record(t, d.version, nil) }))
	}
	return &DirtyError{Version: d.target, At: at, Err: errors.Join(err, d.mark(at))}
}

func (d *stepwise) stay(s script, next int, err error) error {
	at := d.place(s, min(next, len(s.statements)-1), next == len(s.statements))
	return &DirtyError{Version: d.target, At: at, Err: err}
}

func (d *stepwise) place(s script, n int, alone bool) *HalfWay {
	stmt := s.statements[n]
	return &HalfWay{From: d.version, To: d.target, Line: stmt.Line, Statement: stmt.Text, Alone: alone}
}

func (d *stepwise) mark(at *HalfWay) error {
	return d.inTransaction(func(t *sql.Tx) error { return d.own.record(t, d.target, at) })
}

func (d *stepwise) inTransaction(f func(t *sql.Tx) error) error {
	t, err := d.conn.BeginTx(context.WithoutCancel(d.ctx), nil)
	if err != nil {
		return err
	}
	if err := f(t); err != nil {
		return errors.Join(err, t.Rollback())
	}
	return t.Commit()
}

func (d *stepwise) Drop() error {
	return errors.New("dropping a whole database is not supported")
}

func (d *stepwise) exec(statement string) error {
	_, err := d.conn.ExecContext(d.ctx, statement)
	return err
}
