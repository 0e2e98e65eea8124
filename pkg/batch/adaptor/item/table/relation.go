package table

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// relation is a table, view, ... Everything that decides how it is written is here, so that chunks of one
// item and of a thousand are written alike.
type relation struct {
	columns []column
	// COPY has the effect of INSERT (PostgreSQL).
	copies bool
	// its quoted name with its schema, or "" if it takes no binary COPY (PostgreSQL)
	qualified string
	// Triggers may leave rows out (drops), or change keys (rekeys) (PostgreSQL).
	drops, rekeys bool
	// The rows that a view of SQLite takes are not counted.
	uncounted bool
	// The key of an upsert is the only unique index (MySQL).
	onlyKey bool
	// bytes of a statement (MySQL)
	packet  int
	refuses map[writeMode]string
}

func (r *relation) indexOf(name string, d tx.Dialect) int {
	return slices.IndexFunc(r.columns, func(c column) bool { return c.name == name || d != tx.Postgres && strings.EqualFold(c.name, name) })
}

func (r *relation) absent() bool { return len(r.columns) == 0 }

type column struct {
	name  string
	typ   string
	shown string
	oid   uint32
	// why no value can be written
	refused string
	// Values are sent as an array of texts with a cast, since an array of the type would be read
	// differently (PostgreSQL).
	asText bool
	// Null means any
	kind row.Kind
	// a variable that is compared with it, or "" for a plain one (MySQL)
	compared string
	// for times without an offset
	zone *time.Location
	// of numeric(p, s)
	scale *int
	// The column stores decimals, or JSON numbers, as floats (SQLite).
	binary bool
	// The database takes values of kind for equal only if they are equal in Go; it decides where duplicates
	// are removed from an upsert.
	exact bool
	limit *limit
	// the shape of arrays and composites with texts that are parsed into parts (PostgreSQL)
	taken *shape
	// A text of the kind is stored unchanged (JSON of PostgreSQL).
	verbatim bool
	// a nondeterministic one of PostgreSQL, quoted
	collation string
}

func (c *column) typeText() string { return cmp.Or(c.shown, c.typ) }

func (c *column) isDecimal() bool {
	return c.kind == row.DecimalKind || c.kind == row.ListOf(row.DecimalKind)
}

// absentTableError reports that the table is missing, and how to make it.
type absentTableError struct {
	Table     string
	Statement string
}

// Error prints the statement.
func (e *absentTableError) Error() string {
	text := "table " + e.Table + " does not exist"
	if e.Statement != "" {
		text += "; set `create: true`, or create it:\n" + e.Statement
	}
	return text
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func quotedList(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = quoted(n)
	}
	return strings.Join(q, ", ")
}

const maxName = 63
