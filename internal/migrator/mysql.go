package migrator

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	migratedb "github.com/golang-migrate/migrate/v4/database"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/sqlscript"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// mysqlDriver records each statement that commits before and after it (rule MY10).
type mysqlDriver struct {
	stepwise
	table, name string // quoted, and not
	seconds     int
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
	d := &mysqlDriver{table: tx.MySQL.Quote(table), name: table, seconds: int(math.Ceil(timeout.Seconds()))}
	d.stepwise = stepwise{ctx: ctx, pool: pool, conn: conn, own: d, version: migratedb.NilVersion}
	if err := d.exec(fmt.Sprintf("SET lock_wait_timeout = %d, innodb_lock_wait_timeout = %[1]d", max(d.seconds, 1))); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

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
	if err := d.conn.QueryRowContext(d.ctx, "SELECT GET_LOCK(concat(database(), ?), ?)", "."+d.name, d.seconds).Scan(&got); err != nil {
		return err
	}
	if got.Int64 != 1 {
		return migratedb.ErrLocked
	}
	return d.prepare()
}

// prepare makes the table; one of the library's own lacks a column.
func (d *mysqlDriver) prepare() error {
	if err := d.exec("CREATE TABLE IF NOT EXISTS " + d.table + " (version bigint NOT NULL, dirty boolean NOT NULL, half_way mediumtext)"); err != nil {
		return err
	}
	rows, err := d.conn.QueryContext(d.ctx, "SELECT * FROM "+d.table+" LIMIT 0")
	if err != nil {
		return err
	}
	columns, err := rows.Columns()
	if err = errors.Join(err, rows.Err(), rows.Close()); err != nil || slices.Contains(columns, "half_way") {
		return err
	}
	return d.exec("ALTER TABLE " + d.table + " ADD COLUMN half_way mediumtext")
}

func (d *mysqlDriver) Unlock() error {
	_, err := d.conn.ExecContext(context.WithoutCancel(d.ctx), "DO RELEASE_ALL_LOCKS()")
	return err
}

func (d *mysqlDriver) Version() (version int, dirty bool, err error) {
	return d.read("SELECT version, dirty, coalesce(half_way, '') FROM " + d.table + " LIMIT 1")
}

func (d *mysqlDriver) dialect() tx.Dialect { return tx.MySQL }

func (d *mysqlDriver) try(t *sql.Tx, stmt sqlscript.Statement, _ bool) (refused bool, err error) {
	switch stmt.Verb {
	case "SELECT", "VALUES", "INSERT", "UPDATE", "DELETE", "REPLACE", "SET", "DO", "SAVEPOINT", "RELEASE", "ROLLBACK":
	default:
		return true, nil
	}
	_, err = t.ExecContext(d.ctx, stmt.Text)
	if errors.Is(err, tx.ErrNotOwner) { // SET autocommit
		return true, nil
	}
	return false, err
}

const syntaxError = 1064

// leaves is false for statements that are atomic: MySQL 8, MariaDB 10.6.
func (d *mysqlDriver) leaves(stmt sqlscript.Statement, err error) bool {
	code := dberr.MySQLCode(err)
	if code == 0 || code == syntaxError {
		return code == 0
	}
	words := strings.Fields(strings.ToUpper(stmt.Text))
	switch stmt.Verb {
	case "CREATE", "ALTER", "RENAME", "TRUNCATE":
		return slices.Contains(words, "USER") || slices.Contains(words, "ROLE")
	}
	return true
}

// No version means no row, as in the library.
func (d *mysqlDriver) record(t *sql.Tx, version int, at *HalfWay) error {
	if _, err := t.ExecContext(d.ctx, "DELETE FROM "+d.table); err != nil || at == nil && version < 0 {
		return err
	}
	var place any
	if at != nil {
		text, err := at.text()
		if err != nil {
			return err
		}
		place = text
	}
	_, err := t.ExecContext(d.ctx, "INSERT INTO "+d.table+" (version, dirty, half_way) VALUES (?, ?, ?)", version, at != nil, place)
	return err
}
