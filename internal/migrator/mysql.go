package migrator

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"time"

	migratedb "github.com/golang-migrate/migrate/v4/database"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// mysqlDriver runs scripts that can be executed again: DDL commits.
type mysqlDriver struct {
	ctx     context.Context // the library's interface takes none
	pool    *sql.DB
	conn    *sql.Conn
	table   string
	timeout time.Duration
	target  int
}

var _ migratedb.Driver = (*mysqlDriver)(nil)

func newMySQL(ctx context.Context, db tx.Database, table string, timeout time.Duration) (*mysqlDriver, error) {
	pool, err := db.Open()
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return &mysqlDriver{ctx: ctx, pool: pool, conn: conn, table: table, timeout: timeout}, nil
}

func (d *mysqlDriver) Open(string) (migratedb.Driver, error) {
	return nil, errors.New("the migrations' driver is not opened by URL")
}

func (d *mysqlDriver) Close() error { return errors.Join(d.conn.Close(), d.pool.Close()) }

// Lock ends with the session. In a cluster of Galera it would be of one node only.
func (d *mysqlDriver) Lock() error {
	var name, cluster string
	err := d.conn.QueryRowContext(d.ctx, "SHOW VARIABLES LIKE 'wsrep_on'").Scan(&name, &cluster)
	switch {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return err
	case cluster == "ON":
		return errors.New("the server is a node of a Galera cluster, in which GET_LOCK does not lock: create the tables on a server outside of it and copy them")
	}
	var got sql.NullInt64
	if err := d.conn.QueryRowContext(d.ctx, "SELECT GET_LOCK(concat(database(), ?), ?)", "."+d.table, d.timeout.Seconds()).Scan(&got); err != nil {
		return err
	}
	if got.Int64 != 1 {
		return migratedb.ErrLocked
	}
	return d.exec("CREATE TABLE IF NOT EXISTS " + tx.MySQL.Quote(d.table) + " (version bigint NOT NULL, dirty boolean NOT NULL)")
}

func (d *mysqlDriver) Unlock() error { return d.exec("DO RELEASE_ALL_LOCKS()") }

func (d *mysqlDriver) SetVersion(version int, dirty bool) error {
	d.target = version
	t, err := d.conn.BeginTx(d.ctx, nil)
	if err != nil {
		return err
	}
	_, err = t.ExecContext(d.ctx, "DELETE FROM "+tx.MySQL.Quote(d.table))
	if err == nil && version >= 0 {
		_, err = t.ExecContext(d.ctx, "INSERT INTO "+tx.MySQL.Quote(d.table)+" (version, dirty) VALUES (?, ?)", version, dirty)
	}
	if err != nil {
		return errors.Join(err, t.Rollback())
	}
	return t.Commit()
}

func (d *mysqlDriver) Run(migration io.Reader) error {
	script, err := readScript(migration, tx.MySQL)
	if err != nil {
		return towards(d.target, err)
	}
	for _, s := range script.statements {
		if err := d.exec(s.Text); err != nil {
			return towards(d.target, script.at(s, err))
		}
	}
	return nil
}

func (d *mysqlDriver) Version() (version int, dirty bool, err error) {
	err = d.conn.QueryRowContext(d.ctx, "SELECT version, dirty FROM "+tx.MySQL.Quote(d.table)).Scan(&version, &dirty)
	if errors.Is(err, sql.ErrNoRows) {
		return migratedb.NilVersion, false, nil
	}
	return version, dirty, err
}

func (d *mysqlDriver) Drop() error { return errors.New("dropping a whole database is not supported") }

func (d *mysqlDriver) exec(statement string) error {
	_, err := d.conn.ExecContext(d.ctx, statement)
	return err
}
