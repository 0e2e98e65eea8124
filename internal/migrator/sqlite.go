package migrator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	migratedb "github.com/golang-migrate/migrate/v4/database"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// sqliteDriver runs on the one writer: its lock is the transaction, from Lock to Unlock. The
// library's driver locks only within its process, so that two processes can both find version 1
// missing.
type sqliteDriver struct {
	ctx     context.Context // the library's interface takes none
	db      tx.Database
	table   string // quoted
	timeout time.Duration

	handle  tx.Handle
	pending bool // a migration has run after its savepoint
	target  int  // the version that it leads to
	failed  bool
}

var _ migratedb.Driver = (*sqliteDriver)(nil)

func (d *sqliteDriver) Open(string) (migratedb.Driver, error) {
	return nil, errors.New("the migrations' driver is not opened by URL")
}

func (d *sqliteDriver) Close() error { return nil }

func (d *sqliteDriver) Lock() error {
	ctx, cancel := context.WithTimeout(d.ctx, d.timeout)
	defer cancel()
	handle, err := d.db.Begin(ctx, tx.Attr{})
	if err != nil {
		return err
	}
	d.handle, d.failed = handle, false
	err = d.exec("CREATE TABLE IF NOT EXISTS " + d.table + " (version uint64, dirty bool)")
	if err != nil {
		return errors.Join(err, handle.Rollback())
	}
	return nil
}

// Unlock commits the successful part.
func (d *sqliteDriver) Unlock() error {
	if d.pending {
		if err := d.undo(); err != nil {
			return errors.Join(err, d.handle.Rollback())
		}
	}
	if d.failed { // an undo that failed
		return d.handle.Rollback()
	}
	return d.handle.Commit()
}

func (d *sqliteDriver) SetVersion(version int, dirty bool) error {
	if dirty {
		if err := d.exec("SAVEPOINT " + savepoint); err != nil {
			return err
		}
		d.pending, d.target = true, version
		return nil
	}
	if err := d.exec("DELETE FROM " + d.table); err != nil {
		return err
	}
	if version >= 0 {
		if err := d.exec("INSERT INTO "+d.table+" (version, dirty) VALUES (?1, 0)", version); err != nil {
			return err
		}
	}
	if d.pending {
		d.pending = false
		return d.exec("RELEASE SAVEPOINT " + savepoint)
	}
	return nil
}

func (d *sqliteDriver) Run(migration io.Reader) error {
	script, err := readScript(migration, tx.SQLite)
	if err != nil {
		return errors.Join(towards(d.target, err), d.undo())
	}
	for _, s := range script.statements {
		if err := d.exec(s.Text); err != nil {
			return errors.Join(towards(d.target, script.at(s, err)), d.undo())
		}
	}
	return nil
}

func (d *sqliteDriver) undo() error {
	d.pending = false
	ctx := context.WithoutCancel(d.ctx)
	for _, statement := range []string{"ROLLBACK TO SAVEPOINT ", "RELEASE SAVEPOINT "} {
		if _, err := d.handle.Conn().ExecContext(ctx, statement+savepoint); err != nil {
			d.failed = true // SQLite has rolled back everything, or will
			return fmt.Errorf("undo the migration: %w", err)
		}
	}
	return nil
}

func (d *sqliteDriver) Version() (version int, dirty bool, err error) {
	rows, err := d.handle.Conn().QueryContext(d.ctx, "SELECT version, dirty FROM "+d.table)
	if err != nil {
		return 0, false, err
	}
	version = migratedb.NilVersion
	for rows.Next() {
		if err := rows.Scan(&version, &dirty); err != nil {
			return 0, false, errors.Join(err, rows.Close())
		}
	}
	return version, dirty, errors.Join(rows.Err(), rows.Close())
}

func (d *sqliteDriver) Drop() error { return errors.New("dropping a whole database is not supported") }

func (d *sqliteDriver) exec(statement string, args ...any) error {
	_, err := d.handle.Conn().ExecContext(d.ctx, statement, args...)
	return err
}
