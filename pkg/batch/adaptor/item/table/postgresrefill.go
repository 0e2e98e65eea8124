package table

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func (e *postgres) refill(ctx context.Context, conn tx.Conn, table string) (r refillable, err error) {
	rows, err := conn.QueryContext(ctx, `
select c.relkind in ('r', 'p'), coalesce(f.conrelid = c.oid, false), coalesce(f.conrelid::regclass::text, '')
from pg_catalog.pg_class c left join pg_catalog.pg_constraint f on f.contype = 'f' and f.confrelid = c.oid
where c.oid = to_regclass($1) order by 3`, tx.Postgres.Quote(table))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var toItself bool
		var from string
		if err := rows.Scan(&r.isTable, &toItself, &from); err != nil {
			return r, err
		}
		r.toItself = r.toItself || toItself
		if from != "" && !toItself && !slices.Contains(r.referredBy, from) {
			r.referredBy = append(r.referredBy, from)
		}
	}
	return r, rows.Err()
}

func (e *postgres) empty(ctx context.Context, conn tx.Conn, table string, r refillable) error {
	text := "truncate table " + tx.Postgres.Quote(table)
	if len(r.referredBy) > 0 {
		text = "delete from " + tx.Postgres.Quote(table)
	}
	_, err := conn.ExecContext(ctx, text)
	return err
}

func (e *postgres) exclude(ctx context.Context, conn tx.Conn, table string) error {
	_, err := conn.ExecContext(ctx, "lock table "+tx.Postgres.Quote(table)+" in share row exclusive mode")
	return err
}

// shadow makes a table with the checks, unique indexes and foreign keys of
// another one, so that a bad row is found with its item. Unwritten columns and
// foreign keys to the table itself are left to the copy into the table.
func (e *postgres) shadow(ctx context.Context, conn tx.Conn, table, shadow string, columns []string) (string, error) {
	from, to := tx.Postgres.Quote(table), tx.Postgres.Quote(shadow)
	if _, err := conn.ExecContext(ctx, "create table "+to+" (like "+from+" including constraints including indexes)"); err != nil {
		return "", err
	}
	found, err := e.describe(ctx, conn, shadow)
	if err != nil {
		return "", err
	}
	var changes []string
	for _, c := range found.columns {
		if !slices.Contains(columns, c.name) {
			changes = append(changes, "drop column "+quoted(c.name))
		}
	}
	keys, err := e.foreignKeys(ctx, conn, table, columns)
	if err != nil {
		return "", err
	}
	for _, key := range keys {
		changes = append(changes, "add "+key)
	}
	if len(changes) == 0 {
		return shadow, nil
	}
	_, err = conn.ExecContext(ctx, "alter table "+to+" "+strings.Join(changes, ", "))
	return shadow, err
}

func (e *postgres) foreignKeys(ctx context.Context, conn tx.Conn, table string, columns []string) (keys []string, err error) {
	rows, err := conn.QueryContext(ctx, `
select pg_get_constraintdef(f.oid), a.attname
from pg_catalog.pg_constraint f
join pg_catalog.pg_attribute a on a.attrelid = f.conrelid and a.attnum = any(f.conkey)
where f.contype = 'f' and f.conrelid = to_regclass($1) and f.confrelid <> f.conrelid and f.conparentid = 0
order by f.oid`, tx.Postgres.Quote(table))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	left := map[string]bool{}
	for rows.Next() {
		var key, column string
		if err := rows.Scan(&key, &column); err != nil {
			return nil, err
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
		left[key] = left[key] || !slices.Contains(columns, column)
	}
	return slices.DeleteFunc(keys, func(key string) bool { return left[key] }), rows.Err()
}

func (e *postgres) keys(ctx context.Context, conn tx.Conn, table, columns string) (string, error) {
	return freshTable(ctx, conn, tx.Postgres, table, columns)
}
