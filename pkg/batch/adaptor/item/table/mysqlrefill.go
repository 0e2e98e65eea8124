package table

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// refill follows describe, which refuses all but tables of InnoDB.
func (e *mysql) refill(ctx context.Context, conn tx.Conn, table string) (r refillable, err error) {
	r.isTable = true
	schema, name := mysqlNames(table)
	rows, err := conn.QueryContext(ctx, `select distinct if(table_schema = database(), table_name, concat(table_schema, '.', table_name)), table_schema = referenced_table_schema and table_name = referenced_table_name
		from information_schema.key_column_usage where referenced_table_schema = coalesce(nullif(?1, ''), database()) and referenced_table_name = ?2 order by 1`, schema, name)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var from string
		var toItself bool
		if err := rows.Scan(&from, &toItself); err != nil {
			return r, err
		}
		if toItself {
			r.toItself = true
		} else {
			r.referredBy = append(r.referredBy, from)
		}
	}
	return r, rows.Err()
}

func (e *mysql) empty(ctx context.Context, conn tx.Conn, table string, _ refillable) error {
	_, err := conn.ExecContext(ctx, "delete from "+tx.MySQL.Quote(table))
	return err
}

// LOCK TABLES would commit.
func (e *mysql) exclude(context.Context, tx.Conn, string) error { return nil }

// shadow makes the table outside of the transaction, and empties it there, so that an attempt that wakes harms no other
// one. Its name has the definition of the table: a shadow of an earlier definition is not used.
func (e *mysql) shadow(ctx context.Context, conn tx.Conn, table, shadow string, _ []string) (string, error) {
	var name, text string
	if err := conn.QueryRowContext(ctx, "show create table "+tx.MySQL.Quote(table)).Scan(&name, &text); err != nil {
		return "", err
	}
	shadow = bySum(shadow, regexp.MustCompile(` AUTO_INCREMENT=[0-9]+`).ReplaceAllString(text, ""))
	return shadow, e.made(ctx, conn, shadow, "like "+tx.MySQL.Quote(table))
}

func (e *mysql) keys(ctx context.Context, conn tx.Conn, table, columns string) (string, error) {
	table = bySum(table, columns)
	return table, e.made(ctx, conn, table, "("+columns+")")
}

// made makes a table outside of the transaction, and empties it there.
func (e *mysql) made(ctx context.Context, conn tx.Conn, table, definition string) error {
	if _, err := e.db.Conn().ExecContext(ctx, "create table if not exists "+tx.MySQL.Quote(table)+" "+definition); err != nil {
		return err
	}
	return e.empty(ctx, conn, table, refillable{})
}

// bySum is a name with the sum of the definition.
func bySum(table, definition string) string {
	sum := sha256.Sum256([]byte(definition))
	const added = "_00000000"
	schema, bare := mysqlNames(table)
	if len(bare) > maxName-len(added) {
		bare = strings.ToValidUTF8(bare[:maxName-len(added)], "")
	}
	if table = bare + "_" + hex.EncodeToString(sum[:4]); schema != "" {
		table = schema + "." + table
	}
	return table
}

// The schema may be empty.
func mysqlNames(table string) (schema, name string) {
	if s, n, ok := strings.Cut(table, "."); ok {
		return s, n
	}
	return "", table
}

// mysqlRefill drops the shadow, which only a commit can do, after the step's last one.
type mysqlRefill struct{ *refillWriter }

// Finish implements item.Finisher.
func (r mysqlRefill) Finish(ctx context.Context) error { return dropLeft(ctx, r.writer, r.at.Left) }

// Publishes: rows are visible with the commit.
func (mysqlRefill) Publishes() bool { return false }

// mysqlSync drops the table of keys likewise.
type mysqlSync struct{ *syncWriter }

// Finish implements item.Finisher.
func (s mysqlSync) Finish(ctx context.Context) error { return dropLeft(ctx, s.writer, s.at.Left) }

// Publishes: rows are deleted with the commit.
func (mysqlSync) Publishes() bool { return false }

func dropLeft(ctx context.Context, w *writer, table string) error {
	if table == "" {
		return nil
	}
	if err := dropEmpty(ctx, w.db, tx.MySQL.Quote(table)); err != nil {
		return fmt.Errorf("table %s: remove %s: %w", w.config.Name, table, err)
	}
	return nil
}

const noTable = 1146

// dropEmpty leaves a table that has rows, of a later attempt, or is locked.
func dropEmpty(ctx context.Context, db tx.Database, table string) (err error) {
	pool, err := db.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	var hasRows bool
	_, err = conn.ExecContext(ctx, "set lock_wait_timeout = 1")
	if err == nil {
		_, err = conn.ExecContext(ctx, "lock tables "+table+" write")
	}
	if err == nil {
		err = conn.QueryRowContext(ctx, "select exists (select 1 from "+table+")").Scan(&hasRows)
	}
	if err == nil && !hasRows {
		_, err = conn.ExecContext(ctx, "drop table "+table)
	}
	if code := dberr.MySQLCode(err); code == noTable || dberr.EndsMySQL(err) {
		return nil
	}
	return err
}
