package registry

import (
	"reflect"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
)

// ConfigError is about one key, and is reported at its position. Key is a path such as "columns.id".
type ConfigError struct {
	Key string
	// At is the wrong byte of the text, from 1; 0 means all.
	At  int
	Err error
	// Hint suggests a value, or is empty; not in Error.
	Hint string
}

// Error names the key.
func (e *ConfigError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// Size is bytes: 512, 64KB, 10MB, 1GB (powers of 1024).
type Size int64

// Choice is a string type with fixed values; it needs no tag `enum`.
type Choice interface {
	// Values are allowed, usual ones first.
	Values() []string
	// Page of docs/reference explains them; empty lists them at each key.
	Page() string
}

// JSON is written as YAML. A scalar ${...} keeps its type; an unquoted one is a number, true, false or null if
// JSON reads it so, else text. nil means none.
type JSON []byte

// SQL has bind variables for ${...}: Parts are the text around, one more than Args. Values are never spliced
// in.
type SQL struct {
	Parts []string
	Args  []any
	// At is a byte's "file:line:col"; nil if not in a file.
	At func(part, offset int) string
}

// Render joins parts with placeholders, numbered from 1.
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

// String has ? for variables.
func (s SQL) String() string {
	text, _ := s.Render(func(int) string { return "?" })
	return text
}

// IsZero reports no statement.
func (s SQL) IsZero() bool { return len(s.Parts) == 0 }

// Expression over `item`, `meta` and `params` is evaluated per item by its component; Env has the launch's
// values.
type Expression struct {
	Text string
	Env  ExpressionEnv
}

// NamedExpression is one entry of Expressions.
type NamedExpression struct {
	Name string
	Expression
}

// Expressions are in the order written.
type Expressions []NamedExpression

// ExpressionEnv holds parameters and names.
type ExpressionEnv struct {
	// Types maps a path ("params", then name) to a Go type, at load.
	Types map[string]map[string]reflect.Type
	// Values has the same shape; nil at load.
	Values map[string]map[string]any
	// Zone is for times without an offset; nil is UTC.
	Zone      *time.Location
	Calendars map[string]*calendar.Calendar
}
