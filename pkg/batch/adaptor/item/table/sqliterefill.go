package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func (e *sqlite) refill(ctx context.Context, conn tx.Conn, table string) (r refillable, err error) {
	schema, name := schemaOf(table)
	text, err := e.statement(ctx, conn, schema, name)
	if err != nil {
		return r, err
	}
	_, r.isTable = strings.CutPrefix(text, createTable)
	rows, err := conn.QueryContext(ctx, "select distinct m.name, lower(m.name) = lower(?1) from "+quoted(schema)+
		".sqlite_schema m, pragma_foreign_key_list(m.name, ?2) f where m.type = 'table' and lower(f.\"table\") = lower(?1) order by 1", name, schema)
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

func (e *sqlite) empty(ctx context.Context, conn tx.Conn, table string, _ refillable) error {
	_, err := conn.ExecContext(ctx, "delete from "+tx.SQLite.Quote(table))
	return err
}

func (e *sqlite) exclude(context.Context, tx.Conn, string) error { return nil }

const (
	createTable  = "CREATE TABLE "
	createUnique = "CREATE UNIQUE INDEX "
)

// shadow makes a table from the statements of another one and of its unique indexes. AUTOINCREMENT
// continues.
func (e *sqlite) shadow(ctx context.Context, conn tx.Conn, table, shadow string, _ []string) (string, error) {
	schema, name := schemaOf(table)
	text, err := e.statement(ctx, conn, schema, name)
	if err != nil {
		return "", err
	}
	rest, ok := strings.CutPrefix(text, createTable)
	if ok {
		rest, ok = cutName(rest)
	}
	if !ok {
		return "", errNoText
	}
	statements := []string{createTable + tx.SQLite.Quote(shadow) + " " + rest}
	indexes, err := e.uniqueIndexes(ctx, conn, schema, name)
	if err != nil {
		return "", err
	}
	_, bare := schemaOf(shadow)
	for i, index := range indexes {
		statements = append(statements, fmt.Sprintf("%s%s.%s ON %s %s", createUnique, quoted(schema), quoted(fmt.Sprintf("%s_%d", bare, i+1)), quoted(bare), index))
	}
	for _, s := range statements {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return "", err
		}
	}
	if !strings.Contains(strings.ToUpper(rest), "AUTOINCREMENT") {
		return shadow, nil
	}
	sequence := quoted(schema) + ".sqlite_sequence"
	_, err = conn.ExecContext(ctx, "insert into "+sequence+" (name, seq) select ?1, seq from "+sequence+" where lower(name) = lower(?2)", bare, name)
	return shadow, err
}

func (e *sqlite) statement(ctx context.Context, conn tx.Conn, schema, name string) (text string, err error) {
	err = conn.QueryRowContext(ctx, "select sql from "+quoted(schema)+".sqlite_schema where type in ('table', 'view') and lower(name) = lower(?1)", name).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return "", errNoText
	}
	return text, err
}

func (e *sqlite) uniqueIndexes(ctx context.Context, conn tx.Conn, schema, name string) (list []string, err error) {
	rows, err := conn.QueryContext(ctx, "select sql from "+quoted(schema)+".sqlite_schema where type = 'index' and lower(tbl_name) = lower(?1) and sql is not null order by name", name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		rest, unique := strings.CutPrefix(text, createUnique)
		if !unique {
			continue
		}
		rest, ok := cutName(rest)
		rest = strings.TrimSpace(rest)
		if !ok || len(rest) < 2 || !strings.EqualFold(rest[:2], "on") {
			return nil, errNoText
		}
		if rest, ok = cutName(rest[2:]); !ok {
			return nil, errNoText
		}
		list = append(list, rest)
	}
	return list, rows.Err()
}

var errNoText = errors.New("the statement that created it cannot be parsed")

func (e *sqlite) keys(ctx context.Context, conn tx.Conn, table, columns string) (string, error) {
	return freshTable(ctx, conn, tx.SQLite, table, columns)
}
