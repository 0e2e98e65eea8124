package registry

import (
	"reflect"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
)

// ConfigError is an error of Types, New or Validate about one key of the config. It is reported at that
// key's position. Key is a path such as "item" or "columns.id".
type ConfigError struct {
	Key string
	// At is the wrong byte of the key's text, from 1; 0 means all of it.
	At  int
	Err error
	// Hint suggests a correct value; it may be empty, and is not in the text of Error.
	Hint string
}

// Error names the key.
func (e *ConfigError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *ConfigError) Unwrap() error { return e.Err }

// Size is a number of bytes, written as 512, 64KB, 10MB or 1GB (powers of 1024).
type Size int64

// Choice is implemented by types of kind string with a fixed table of values, such as the encodings of
// files. A config field of such a type needs no tag `enum`.
type Choice interface {
	// Values are the texts allowed, the usual ones first.
	Values() []string
	// Page is the page of docs/reference that explains them; empty lists them at each key.
	Page() string
}

// JSON is a JSON value that the job file writes as YAML: maps, lists and scalars. A scalar that is one
// ${...} keeps its type; an unquoted scalar is a number, true, false or null if JSON reads it so,
// otherwise a text. nil means none.
type JSON []byte

// SQL is a statement with bind variables in place of ${...}: Parts are the text around them, one more
// than Args. Values are never spliced into the text.
type SQL struct {
	Parts []string
	Args  []any
	// At returns the position in the job file, "file:line:col", of a byte of a part; nil if the
	// statement is not in a file.
	At func(part, offset int) string
}

// Render joins the parts with the dialect's placeholders; placeholder gets the
// 1-based number of the variable.
func (s SQL) Render(placeholder func(n int) string) (text string, args []any) {
	var b strings.Builder
	for i, part := range s.Parts {
		if i > 0 {
			b.WriteString(placeholder(i))
		}
		b.WriteString(part)
	}
	return b.String(), s.Args
}

// String returns the text with ? for each variable, for messages.
func (s SQL) String() string {
	text, _ := s.Render(func(int) string { return "?" })
	return text
}

// IsZero reports whether there is no statement.
func (s SQL) IsZero() bool { return len(s.Parts) == 0 }

// Expression is a bare expression over `item`, `meta` and `params`, evaluated once per item by the
// component that has it in its config. Env holds the values of the launch that it may use.
type Expression struct {
	Text string
	Env  ExpressionEnv
}

// NamedExpression is one entry of Expressions.
type NamedExpression struct {
	Name string
	Expression
}

// Expressions are named expressions in the order written.
type Expressions []NamedExpression

// ExpressionEnv holds the values for expressions other than the item: the job's parameters and names.
type ExpressionEnv struct {
	// Types maps a variable path ("params", then name) to its Go type; it is set at load.
	Types map[string]map[string]reflect.Type
	// Values has the same shape; nil at load.
	Values map[string]map[string]any
	// Zone is the time zone of the job, for times without an offset; nil is UTC.
	Zone *time.Location
	// Calendars are the job's calendars, by name, in addition to calendar.Stock.
	Calendars map[string]*calendar.Calendar
}
