package check

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/sqlerr"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// All statements of a transaction see the same rows.
const snapshotIsolation = sql.LevelRepeatableRead

const shownBytes = 300

type run struct {
	db     tx.Database
	config *config
	step   core.StepExecution
	job    string

	checks int
	rows   int64
	failed int64
	broken []string
}

type query struct {
	// of the job file
	of registry.SQL
	// the SELECT, as q, and the condition on its rows
	source, where string
	// of source, then of where
	args       []any
	sourceArgs int
}

func (q query) from() string { return q.source + q.where }

func (r *run) all(ctx context.Context) error {
	if r.config.Table != "" || !r.config.SQL.IsZero() {
		if err := r.rowwise(ctx); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.config.None)) {
		q, err := r.source(r.config.None[name])
		if err == nil {
			err = r.check(ctx, name, q, "")
		}
		if err != nil {
			return fmt.Errorf("none.%s: %w", name, err)
		}
	}
	return nil
}

func (r *run) rowwise(ctx context.Context) error {
	table := r.config.SQL
	if r.config.Table != "" {
		table = registry.SQL{Parts: []string{"select * from " + r.db.Dialect().Quote(r.config.Table)}}
	}
	src, err := r.source(table)
	if err != nil {
		return err
	}
	count := "select count(*) from " + src.source
	if err := tx.ConnOf(ctx, r.db).QueryRowContext(ctx, count, src.args...).Scan(&r.rows); err != nil {
		return sqlerr.In(src.of, r.db.Dialect(), count, err)
	}
	for _, rule := range r.rules(src) {
		if err := r.check(ctx, rule.name, rule.query, rule.order); err != nil {
			return fmt.Errorf("%s: %w", rule.name, err)
		}
	}
	return nil
}

func (r *run) source(statement registry.SQL) (query, error) {
	text, args := statement.Render(r.db.Dialect().Placeholder)
	args, err := sqlvalue.Args(args, r.bind)
	return query{of: statement, source: "(\n" + strings.TrimRight(text, "; \t\r\n") + "\n) q", args: args, sourceArgs: len(args)}, err
}

func (r *run) bind(v row.Value) any {
	return sqlvalue.Bind(r.db.Dialect())(v)
}

// its query returns the rows that break it
type rule struct {
	name, order string
	query
}

// Without q, SQLite would take a name without a column for a text.
func (r *run) column(name string) string { return `q."` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// MySQL would compare texts by a collation.
func (r *run) asText(column string) string {
	if r.db.Dialect() == tx.MySQL {
		return "cast(cast(" + column + " as char) as binary)"
	}
	return "cast(" + column + " as text)"
}

func (r *run) rules(src query) []rule {
	var list []rule
	add := func(name, order, where string, args ...any) {
		q := src
		q.where, q.args = " where "+where, append(slices.Clone(src.args), args...)
		list = append(list, rule{name: name, order: order, query: q})
	}
	for _, names := range r.config.Unique {
		columns := columnsOf(names)
		quoted, there := make([]string, len(columns)), make([]string, len(columns))
		for i, c := range columns {
			quoted[i] = r.column(c)
			there[i] = quoted[i] + " is not null"
		}
		keys, whole := strings.Join(quoted, ", "), strings.Join(there, " and ")
		add("unique "+strings.Join(columns, ", "), keys,
			fmt.Sprintf("%s and (%s) in (select %s from %s where %s group by %s having count(*) > 1)", whole, keys, keys, src.source, whole, keys))
	}
	for _, name := range r.config.NotNull {
		add("not_null "+name, "", r.column(name)+" is null")
	}
	for _, name := range slices.Sorted(maps.Keys(r.config.AcceptedValues)) {
		var places []string
		var values []any
		for i, value := range r.config.AcceptedValues[name] {
			values = append(values, value)
			places = append(places, r.db.Dialect().Placeholder(len(src.args)+i+1))
		}
		c := r.column(name)
		add("accepted_values "+name, "", fmt.Sprintf("%s is not null and %s not in (%s)", c, r.asText(c), strings.Join(places, ", ")), values...)
	}
	for _, name := range slices.Sorted(maps.Keys(r.config.Relationships)) {
		parent := r.config.Relationships[name]
		at, c := strings.LastIndexByte(parent, '.'), r.column(name)
		add("relationships "+name, "", fmt.Sprintf("%s is not null and not exists (select 1 from %s p where p.%s = %s)",
			c, r.db.Dialect().Quote(parent[:at]), strings.TrimPrefix(r.column(parent[at+1:]), "q."), c))
	}
	return list
}

func (r *run) check(ctx context.Context, name string, q query, order string) error {
	r.checks++
	conn := tx.ConnOf(ctx, r.db)
	var n int64
	count := "select count(*) from " + q.from()
	if err := conn.QueryRowContext(ctx, count, q.args...).Scan(&n); err != nil {
		return sqlerr.In(q.of, r.db.Dialect(), count, r.explain(ctx, q, err))
	}
	if n == 0 {
		return nil
	}
	r.failed += n
	rows := "rows"
	if n == 1 {
		rows = "row"
	}
	text := fmt.Sprintf("%s: %d %s", name, n, rows)
	if r.config.Show > 0 || r.config.Store != "" {
		asJSON, err := r.rowText(ctx, q)
		if err != nil {
			return err
		}
		first, err := r.first(ctx, asJSON, q, order)
		if err != nil {
			return err
		}
		if len(first) > 0 {
			text += ", such as " + strings.Join(first, ", ")
		}
		if err := r.store(ctx, name, asJSON, q); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	r.broken = append(r.broken, text)
	return nil
}

// SQLite's message about an unknown name does not list the existing ones.
func (r *run) explain(ctx context.Context, q query, err error) error {
	if r.db.Dialect() != tx.SQLite {
		return err // names the column, and is the last answer in its transaction
	}
	_, quoted, found := strings.Cut(err.Error(), "no such column: q.")
	if !found {
		return err
	}
	types, nerr := r.columnTypes(ctx, q)
	if nerr != nil {
		return err
	}
	name, _, _ := strings.Cut(quoted, " ")
	return fmt.Errorf("%w%s", err, nearest.Hint(strings.Trim(name, `"`), namesOf(types)))
}

func (r *run) first(ctx context.Context, asJSON string, q query, order string) (texts []string, err error) {
	if r.config.Show == 0 {
		return nil, nil
	}
	statement := "select " + asJSON + " from " + q.from()
	if order != "" {
		statement += " order by " + order
	}
	rows, err := tx.ConnOf(ctx, r.db).QueryContext(ctx, statement+" limit "+strconv.Itoa(r.config.Show), q.args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		if len(text) > shownBytes {
			text = strings.ToValidUTF8(text[:shownBytes], "") + "…"
		}
		texts = append(texts, text)
	}
	return texts, rows.Err()
}

func (r *run) rowText(ctx context.Context, q query) (string, error) {
	if r.db.Dialect() == tx.Postgres {
		return "cast(row_to_json(q) as text)", nil
	}
	types, err := r.columnTypes(ctx, q)
	if err != nil {
		return "", err
	}
	if r.db.Dialect() == tx.MySQL {
		return r.mysqlText(types), nil
	}
	names := namesOf(types)
	parts := make([]string, len(names))
	for i, name := range names {
		c := r.column(name)
		parts[i] = fmt.Sprintf("json_quote('%s') || ':' || case typeof(%s) when 'blob' then json_quote(hex(%s)) else json_quote(%s) end",
			strings.ReplaceAll(name, "'", "''"), c, c, c)
	}
	return "'{' || " + strings.Join(parts, " || ',' || ") + " || '}'", nil
}

func (r *run) mysqlText(types []*sql.ColumnType) string {
	parts := make([]string, len(types))
	for i, t := range types {
		c := r.column(t.Name())
		switch typ := t.DatabaseTypeName(); {
		case strings.HasSuffix(typ, "BINARY") || strings.HasSuffix(typ, "BLOB") || typ == "GEOMETRY":
			c = "hex(" + c + ")"
		case typ == "BIT":
			c += " + 0"
		}
		parts[i] = fmt.Sprintf("'%s', %s", strings.NewReplacer("'", "''", `\`, `\\`).Replace(t.Name()), c)
	}
	return "json_object(" + strings.Join(parts, ", ") + ")"
}

func namesOf(types []*sql.ColumnType) []string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.Name()
	}
	return names
}

func (r *run) columnTypes(ctx context.Context, q query) (types []*sql.ColumnType, err error) {
	rows, err := tx.ConnOf(ctx, r.db).QueryContext(ctx, "select * from "+q.source+" limit 0", q.args[:q.sourceArgs]...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Err(), rows.Close()) }()
	return rows.ColumnTypes()
}

func createStore(ctx context.Context, db tx.Database, name string) error {
	number, instant := "integer", "timestamp"
	if db.Dialect() == tx.Postgres {
		number, instant = "bigint", "timestamptz"
	}
	statement := fmt.Sprintf("create table if not exists %s (execution %s not null, step_execution %s not null, job text not null, step text not null, "+
		"check_name text not null, failed_row text not null, stored_at %s not null)", db.Dialect().Quote(name), number, number, instant)
	if db.Dialect() == tx.Postgres { // two at once would otherwise not find that it exists
		statement = "do $surfin$ begin perform pg_advisory_xact_lock(hashtext('surfin: create table')); " + statement + "; end $surfin$"
	}
	if _, err := db.Conn().ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("store: create table %s: %w", name, err)
	}
	return nil
}

func (r *run) store(ctx context.Context, name, asJSON string, q query) error {
	if r.config.Store == "" {
		return nil
	}
	d, args := r.db.Dialect(), slices.Clone(q.args)
	text := func(value any) string {
		args = append(args, value)
		return d.Placeholder(len(args))
	}
	statement := fmt.Sprintf("insert into %s (execution, step_execution, job, step, check_name, failed_row, stored_at) select %d, %d, cast(%s as text), cast(%s as text), cast(%s as text), %s, ",
		d.Quote(r.config.Store), r.step.JobExecutionID, r.step.ID, text(r.job), text(r.step.Name), text(name), asJSON)
	if now := text(r.bind(row.TimestampValue(time.Now()))); d == tx.Postgres {
		statement += "cast(" + now + " as timestamptz)"
	} else {
		statement += now
	}
	_, err := tx.ConnOf(ctx, r.db).ExecContext(ctx, statement+" from "+q.from(), args...)
	return err
}
