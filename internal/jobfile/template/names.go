package template

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/gofield"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Names are the names that an expression may use at its location.
type Names struct {
	Scope   expression.Scope
	Refusal func(path string) string
	Unknown []string
	Steps   func(c *yamlfile.Collector, n *yamlfile.Node, offset int, step string)
}

// CompileHole compiles one ${...}. It reports an error.
func CompileHole(c *yamlfile.Collector, n *yamlfile.Node, h Hole, in *Names) (*expression.Program, error) {
	if h.Text == "" {
		c.AddAt(n, h.Offset, "${} is empty", "a literal ${ is written $${")
		return nil, errReported
	}
	return in.Compile(c, n, h.Text, h.Offset, "${"+h.Text+"}: ")
}

// Compile compiles an expression at an offset of a node's text.
func (in *Names) Compile(c *yamlfile.Collector, n *yamlfile.Node, text string, offset int, what string) (*expression.Program, error) {
	prog, err := expression.Compile(text, in.Scope)
	if err != nil {
		if slices.ContainsFunc(in.Unknown, func(begin string) bool { return strings.Contains(text, begin) }) {
			return nil, errReported // where it should be known
		}
		if in.reportRefusal(c, n, text, offset, what) {
			return nil, errReported
		}
		at := 0
		var where *expression.Error
		if errors.As(err, &where) {
			at = where.Offset
		}
		c.AddAt(n, offset+at, what+err.Error(), ExpressionHint(n, where))
		return nil, errReported
	}
	for _, path := range prog.Vars() {
		if slices.ContainsFunc(in.Unknown, func(begin string) bool { return strings.HasPrefix(path, begin) }) {
			return nil, errReported // where it should be known
		}
		if in.Refusal != nil {
			if why := in.Refusal(path); why != "" {
				c.AddAt(n, offset, what+why, "")
				return nil, errReported
			}
		}
		if rest, is := strings.CutPrefix(path, "steps."); is && in.Steps != nil {
			step, _, _ := strings.Cut(rest, ".")
			in.Steps(c, n, offset, step)
		}
	}
	return prog, nil
}

func (in *Names) reportRefusal(c *yamlfile.Collector, n *yamlfile.Node, text string, offset int, what string) bool {
	if in.Refusal == nil {
		return false
	}
	for _, at := range dotted.FindAllStringIndex(text, -1) {
		if why := in.Refusal(text[at[0]:at[1]]); why != "" {
			c.AddAt(n, offset+at[0], what+why, "")
			return true
		}
	}
	return false
}

var dotted = regexp.MustCompile(`\b[a-z]+\.[A-Za-z_]+`)

var errReported = errors.New("reported")

// NeedsStep reports whether a program uses values that are known only when its step starts.
func NeedsStep(prog *expression.Program) bool {
	return slices.ContainsFunc(prog.Vars(), func(path string) bool {
		head, rest, _ := strings.Cut(path, ".")
		return head != "params" && head != "env" && head != "secret" && path != "job.name" && rest != ""
	})
}

// ExpressionHint is the hint for an error of the expression in a node.
func ExpressionHint(n *yamlfile.Node, err *expression.Error) string {
	if comment := commentHint(n); comment != "" || err == nil {
		return comment
	}
	return err.Hint
}

func commentHint(n *yamlfile.Node) string {
	if n.Comment() == "" {
		return ""
	}
	return fmt.Sprintf("YAML takes %q as a comment: put the expression in quotes if it belongs to it", n.Comment())
}

// Fits reports whether got fits want: a text takes any value, a float an int.
func Fits(got, want reflect.Type) bool {
	switch {
	case got == nil:
		return false
	case got == want:
		return true
	case want.Kind() == reflect.String:
		return TypeName(got) != ""
	case want.Kind() == reflect.Interface:
		return true
	case want == reflect.TypeFor[time.Duration](), got == reflect.TypeFor[time.Duration]():
		return false
	case want.Kind() == reflect.Bool:
		return got.Kind() == reflect.Bool
	case want.Kind() == reflect.Float64, want.Kind() == reflect.Float32:
		return got == reflect.TypeFor[float64]() || got == reflect.TypeFor[int64]()
	case reflect.Zero(want).CanInt(), reflect.Zero(want).CanUint():
		return got == reflect.TypeFor[int64]()
	}
	return false
}

// TypeName is the name of a Go type in messages; "" for a type that the file has no word for.
func TypeName(t reflect.Type) string {
	switch {
	case t == nil:
		return "null"
	case t == reflect.TypeFor[time.Duration]():
		return "a duration"
	case t == reflect.TypeFor[time.Time]():
		return "a timestamp"
	case t == reflect.TypeFor[row.Date]():
		return "a date"
	case t == reflect.TypeFor[row.Decimal]():
		return "a decimal"
	case t == reflect.TypeFor[registry.Size]():
		return "a size"
	}
	if kind, ok := gofield.TextKind(t); ok {
		return cmp.Or(map[row.Kind]string{row.JSONKind: "json", row.UUIDKind: "a uuid", row.BytesKind: "bytes"}[kind], "a "+kind.String())
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a bool"
	case reflect.Float32, reflect.Float64:
		return "a float"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an int"
	default:
		return ""
	}
}

// GoType is the Go type of the values of a parameter.
func GoType(t core.ParameterType) reflect.Type {
	return map[core.ParameterType]reflect.Type{
		core.TypeString:    reflect.TypeFor[string](),
		core.TypePath:      reflect.TypeFor[string](),
		core.TypeInt:       reflect.TypeFor[int64](),
		core.TypeFloat:     reflect.TypeFor[float64](),
		core.TypeDecimal:   reflect.TypeFor[row.Decimal](),
		core.TypeBool:      reflect.TypeFor[bool](),
		core.TypeDate:      reflect.TypeFor[core.Date](),
		core.TypeTimestamp: reflect.TypeFor[time.Time](),
		core.TypeDuration:  reflect.TypeFor[time.Duration](),
	}[t]
}

// Text is the text of a value in a file.
func Text(x any) string {
	for _, t := range core.ParameterTypes() {
		if text, err := (core.Parameter{Type: t, Value: x}).Canonical(); err == nil {
			return text
		}
	}
	if n, ok := x.(json.Number); ok {
		return n.String()
	}
	if t, ok := x.(time.Time); ok {
		return t.UTC().Format(row.TimestampLayout)
	}
	return fmt.Sprint(x)
}

// Clock is the time zone of a job, with its calendars of business days.
type Clock struct {
	Zone      *time.Location
	Calendars map[string]*calendar.Calendar
}

// AddTo adds the zone and the calendars to the names of an expression.
func (c Clock) AddTo(scope expression.Scope) {
	scope[expression.Calendars] = expression.Var{Calendars: c.Calendars}
	scope[expression.Zone] = expression.Var{Zone: c.Zone}
}

// Values returns today(), in the job's time zone, and now().
func (c Clock) Values(now time.Time) map[string]any {
	_, offset := now.In(c.Zone).Zone()
	local := now.Add(time.Duration(offset) * time.Second).UTC()
	days := local.Truncate(24*time.Hour).Unix() / int64(24*time.Hour/time.Second)
	return map[string]any{expression.Today: core.Date(0).AddDays(int(days)), expression.Now: now.UTC().Truncate(time.Microsecond)}
}
