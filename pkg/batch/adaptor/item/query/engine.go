package query

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type resultColumn struct {
	name string
	// inner is the column's name in an outer statement, if different: SQLite uses column2 for true.
	inner string
	field *row.Field
	// stored is field with the text form of a column of dates, times or lists: ISO 8601, and arrays.
	stored *row.Field
	oid    uint32
	typ    string
	kind   row.Kind
	// The database takes two values for equal only if they are identical.
	exact bool
	// declared NOT NULL
	notNull bool
	// The kind comes from the first values: as text, any value fits.
	guessed bool
	// of a decimal (MySQL)
	scale int64
	// a zero date is null (MySQL)
	zeroIsNull bool
}

// variable is the nth one, to be compared with the column: MySQL would compare a decimal with a text as floats.
func (c *resultColumn) variable(d tx.Dialect, n int) string {
	if d == tx.MySQL && c.kind == row.DecimalKind {
		return fmt.Sprintf("cast(%s as decimal(65, %d))", d.Placeholder(n), c.scale)
	}
	return d.Placeholder(n)
}

func (c *resultColumn) source() string { return quoted(cmp.Or(c.inner, c.name)) }

type page interface {
	len() int
	// A misfit is an invalid item.
	value(row, column int) (row.Value, error)
	// raw is a value as in the database, by which keys are compared: 007 in a column of text is not 7.
	raw(row, column int) (row.Value, error)
}

type engine interface {
	describe(ctx context.Context, conn tx.Conn, text string, args []any) ([]resultColumn, error)
	fits(c *resultColumn) error
	output(c *resultColumn) string
	// judge determines which key columns are exact, and refuses columns that cannot be a key.
	judge(ctx context.Context, conn tx.Conn, text string, args []any, keys []*resultColumn) error
	answer() resultColumn
	bind(v row.Value) any
	notNull(ctx context.Context, conn tx.Conn, of plainTable) (catalogued, error)
	cursor(ctx context.Context, conn tx.Conn, columns []resultColumn, text string, args []any) (cursor, error)
	// fetch invalidates the previous page.
	fetch(ctx context.Context, conn tx.Conn, columns []resultColumn, text string, args []any) (page, error)
}

type cursor interface {
	// fewer than n rows means that there are no more.
	next(ctx context.Context, n int) (page, error)
	close() error
}

func (c *resultColumn) differ(a, b row.Value) bool {
	switch {
	case a == b:
		return false
	case c.exact:
		return true
	case a.Kind() != b.Kind():
		return false
	case c.isNumeric():
		return trimZeros(a.String()) != trimZeros(b.String())
	}
	return isExact(a.Kind())
}

// Numeric is received as text, since its field may be any number.
func (c *resultColumn) isText() bool {
	switch c.kind {
	case row.String, row.DecimalKind, row.JSONKind, row.UUIDKind:
		return true
	default:
		return c.kind.IsList()
	}
}

func (c *resultColumn) isNumeric() bool { return c.oid == pgtype.NumericOID }

func isExact(k row.Kind) bool {
	switch k {
	case row.Int, row.Float, row.Bool, row.DateKind, row.Timestamp, row.BytesKind:
		return true
	default:
		return false
	}
}

func trimZeros(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// an array with ISO 8601 and decimal points, whatever the field's own text form
func arrayField(f *row.Field, column row.Kind) (*row.Field, error) {
	stored := row.Field{Name: f.Name, Kind: column, Nullable: true, Nulls: []string{}, Hidden: f.Hidden}
	if f.Kind.IsList() {
		stored.Kind, stored.Scale = f.Kind, f.Scale
	}
	if f.Coerce != row.CoerceError {
		stored.Coerce = row.CoerceConvert
	}
	schema, err := row.NewSchema(stored)
	if err != nil {
		return nil, err
	}
	return schema.Field(0), nil
}

func arrayOf(c *resultColumn, text string) (row.Value, error) {
	f := c.field
	if f.Kind != row.JSONKind && !f.Kind.IsList() {
		return f.Parse(text)
	}
	list, err := c.stored.Parse(text)
	switch {
	case err != nil:
		return f.Coerced(text, err)
	case f.Kind == row.JSONKind:
		list = row.JSONValue(row.JSON(list.String()))
	}
	return f.Known(list)
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
