package query

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// for a column with a declaration that shows no type
const sampleRows = 100

type sqlite struct{ page sqlitePage }

// The driver interprets values by the column's declared type: an expression has none.
func (e *sqlite) output(c *resultColumn) string { return "+q." + c.source() }

func (e *sqlite) judge(context.Context, tx.Conn, string, []any, []*resultColumn) error { return nil }

func (e *sqlite) answer() resultColumn { return resultColumn{} }

func (e *sqlite) bind(v row.Value) any { return sqlvalue.SQLite(v) }

// Any column of SQLite may hold any value.
func (e *sqlite) fits(*resultColumn) error { return nil }

func (e *sqlite) describe(ctx context.Context, conn tx.Conn, text string, args []any) ([]resultColumn, error) {
	columns, err := declared(ctx, conn, text, args)
	if err != nil {
		return nil, err
	}
	if err := e.rename(ctx, conn, columns, text, args); err != nil {
		return nil, err
	}
	var unknown []int
	for i := range columns {
		if columns[i].kind == row.Null {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) == 0 {
		return columns, nil
	}
	return columns, e.sample(ctx, conn, columns, unknown, strings.TrimSuffix(text, " limit 0"), args)
}

var generatedName = regexp.MustCompile(`^column\d+(:\d+)?$`)

// In a nested statement SQLite replaces the names true and false.
func (e *sqlite) rename(ctx context.Context, conn tx.Conn, columns []resultColumn, text string, args []any) error {
	if !slices.ContainsFunc(columns, func(c resultColumn) bool { return generatedName.MatchString(c.name) }) {
		return nil
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(text, "select * from (\n"), "\n) q limit 0")
	named, err := declared(ctx, conn, inner, args)
	if err != nil {
		return err
	}
	for i := range columns {
		if c := &columns[i]; named[i].name != c.name && generatedName.MatchString(c.name) {
			c.name, c.inner = named[i].name, c.name
		}
	}
	return nil
}

func declared(ctx context.Context, conn tx.Conn, text string, args []any) (columns []resultColumn, err error) {
	rows, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	for _, t := range types {
		c := resultColumn{name: t.Name(), typ: t.DatabaseTypeName()}
		c.kind = sqlvalue.DeclaredKind(c.typ)
		columns = append(columns, c)
	}
	return columns, rows.Err()
}

// for an inconclusive declared type (none, as for an expression, or NUMERIC)
func (e *sqlite) sample(ctx context.Context, conn tx.Conn, columns []resultColumn, unknown []int, text string, args []any) (err error) {
	types := make([]string, len(unknown))
	for i, at := range unknown {
		types[i] = "typeof(q." + columns[at].source() + ")"
	}
	text = strings.Replace(text, "select *", "select "+strings.Join(types, ", "), 1)
	rows, err := conn.QueryContext(ctx, fmt.Sprintf("%s limit %d", text, sampleRows), args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	seen, cells := make([]map[string]bool, len(unknown)), make([]string, len(unknown))
	targets := make([]any, len(unknown))
	for i := range unknown {
		seen[i], targets[i] = map[string]bool{}, &cells[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		for i, c := range cells {
			seen[i][c] = true
		}
	}
	for i, at := range unknown {
		columns[at].kind, columns[at].typ = sampledKind(seen[i])
		columns[at].guessed = true
	}
	return rows.Err()
}

func sampledKind(seen map[string]bool) (row.Kind, string) {
	switch {
	case seen["blob"]:
		return row.BytesKind, "blob"
	case seen["text"]:
		return row.String, "text"
	case seen["real"]:
		return row.Float, "real"
	case seen["integer"]:
		return row.Int, "integer"
	}
	return row.String, "null"
}

type sqlitePage struct {
	columns []resultColumn
	cells   []any
	targets []any
}

func (e *sqlite) fetch(ctx context.Context, conn tx.Conn, columns []resultColumn, text string, args []any) (p page, err error) {
	rows, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	return &e.page, e.page.fill(rows, columns, -1)
}

func (p *sqlitePage) fill(rows *sql.Rows, columns []resultColumn, n int) error {
	clear(p.cells)
	p.columns, p.cells = columns, p.cells[:0]
	if len(p.targets) != len(columns) {
		p.targets = make([]any, len(columns))
	}
	line := make([]any, len(columns))
	for i := range line {
		p.targets[i] = &line[i]
	}
	for ; n != 0 && rows.Next(); n-- {
		if err := rows.Scan(p.targets...); err != nil {
			return err
		}
		p.cells = append(p.cells, line...)
	}
	return rows.Err()
}

type sqliteCursor struct {
	page    *sqlitePage
	columns []resultColumn
	rows    *sql.Rows
	cancel  context.CancelFunc
}

func (e *sqlite) cursor(ctx context.Context, conn tx.Conn, columns []resultColumn, text string, args []any) (cursor, error) {
	ctx, cancel := context.WithCancel(ctx)
	rows, err := conn.QueryContext(ctx, text, args...) //nolint:sqlclosecheck,rowserrcheck // close and next do
	if err != nil {
		cancel()
		return nil, err
	}
	return &sqliteCursor{page: &e.page, columns: columns, rows: rows, cancel: cancel}, nil
}

// next ends with ctx, though the cursor has its own context.
func (c *sqliteCursor) next(ctx context.Context, n int) (page, error) {
	defer context.AfterFunc(ctx, c.cancel)()
	return c.page, c.page.fill(c.rows, c.columns, n)
}

func (c *sqliteCursor) close() error {
	defer c.cancel()
	return c.rows.Close()
}

func (p *sqlitePage) len() int { return len(p.cells) / len(p.columns) }

func (p *sqlitePage) raw(at, column int) (row.Value, error) {
	return row.ValueOf(p.cells[at*len(p.columns)+column])
}

func (p *sqlitePage) value(at, column int) (row.Value, error) {
	f := p.columns[column].field
	x := p.cells[at*len(p.columns)+column]
	if p.columns[column].guessed && f.Kind == row.String {
		v, err := p.raw(at, column)
		if err != nil || v.IsNull() {
			return v, err
		}
		return row.StringValue(v.String()), nil
	}
	if p.columns[column].kind.IsList() {
		if text, ok := x.(string); ok {
			return arrayOf(&p.columns[column], text)
		}
	} else if stored := p.columns[column].stored; stored != nil {
		f = stored
	}
	if text, ok := x.(string); ok && f.Kind == row.BytesKind && p.columns[column].kind == row.BytesKind {
		return f.Known(row.BytesText(text))
	}
	return sqlvalue.Fit(f, x)
}
