package jobfile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile/internal/strict"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// laterNames are names of expressions that jobfile.md knows and this version does
// not: namespaces, and fields of `job`.
func laterNames() (namespaces, job []string) {
	return []string{"secret", "part", "context", "with"}, []string{"time", "status", "error", "failed_step"}
}

// scope is what ${...} in the config of a step may use.
func (l *loader) scope(step string) expression.Scope {
	text := expression.Var{Type: reflect.TypeFor[string]()}
	job := map[string]expression.Var{"name": text, "execution": {Type: reflect.TypeFor[int64]()}}
	namespaces, fields := laterNames()
	for _, name := range fields {
		job[name] = text
	}
	scope := expression.Scope{
		"params": {Fields: l.paramVars()},
		"job":    {Fields: job},
		"env":    {Open: true},
		"steps":  {Fields: l.stepVars(step)},
	}
	for _, name := range namespaces {
		scope[name] = expression.Var{Open: true}
	}
	return scope
}

func (l *loader) paramVars() map[string]expression.Var {
	vars := map[string]expression.Var{}
	for _, p := range l.file.specs {
		vars[p.Name] = expression.Var{Type: parameterGoType(p.Type), Nullable: !p.Required && p.Default == nil}
	}
	return vars
}

// stepFields are the numbers of steps.NAME: the same words as everywhere.
func stepFields() []string {
	return []string{"read", "filtered", "written", "skipped", "read_skipped", "process_skipped", "write_skipped", "commits", "rollbacks"}
}

func (l *loader) stepVars(except string) map[string]expression.Var {
	vars := map[string]expression.Var{}
	for _, name := range l.stepNames {
		if name == except {
			continue
		}
		fields := map[string]expression.Var{
			"duration": {Type: reflect.TypeFor[time.Duration]()},
			"status":   {Type: reflect.TypeFor[string]()},
			"exit":     {Type: reflect.TypeFor[string]()},
			"out":      l.file.outVar(name),
		}
		for _, f := range stepFields() {
			fields[f] = expression.Var{Type: reflect.TypeFor[int64]()}
		}
		vars[name] = expression.Var{Fields: fields}
	}
	return vars
}

// outVar types the named results of a step: by the row type that its tasklet's
// config has under `out`, or as texts.
func (f *File) outVar(step string) expression.Var {
	schema := f.outs[step]
	if schema == nil {
		return expression.Var{Open: true}
	}
	fields := map[string]expression.Var{}
	for _, field := range schema.Fields() {
		fields[field.Name] = expression.Var{Type: expression.GoType(field.Kind), Nullable: field.Nullable}
	}
	return expression.Var{Fields: fields}
}

// env is what the expressions over items may use, at load.
func (l *loader) env() core.ExpressionEnv {
	params := map[string]reflect.Type{}
	for name, v := range l.paramVars() {
		params[name] = v.Type
		if v.Nullable {
			params[name] = reflect.PointerTo(v.Type)
		}
	}
	return core.ExpressionEnv{Types: map[string]map[string]reflect.Type{
		"params": params,
		"job":    {"name": reflect.TypeFor[string](), "execution": reflect.TypeFor[int64]()},
	}}
}

var errReported = errors.New("reported")

// compileHole compiles one ${...}, and refuses names that are not supported yet.
func compileHole(c *strict.Collector, n *strict.Node, h hole, scope expression.Scope) (*expression.Program, error) {
	if h.text == "" {
		c.AddAt(n, h.offset, "${} is empty", "a literal ${ is written $${")
		return nil, errReported
	}
	prog, err := expression.Compile(h.text, scope)
	if err != nil {
		offset := 0
		var where *expression.Error
		if errors.As(err, &where) {
			offset = where.Offset
		}
		c.AddAt(n, h.offset+offset, fmt.Sprintf("${%s}: %v", h.text, err), "")
		return nil, errReported
	}
	namespaces, fields := laterNames()
	for _, path := range prog.Vars() {
		head, rest, _ := strings.Cut(path, ".")
		if slices.Contains(namespaces, head) || head == "job" && slices.Contains(fields, rest) {
			c.AddAt(n, h.offset, fmt.Sprintf("${%s}: %s is not supported by this version yet", h.text, path), "")
			return nil, errReported
		}
	}
	return prog, nil
}

// needsStep reports whether a program uses what is only known when its step
// starts.
func needsStep(prog *expression.Program) bool {
	return slices.ContainsFunc(prog.Vars(), func(path string) bool {
		return strings.HasPrefix(path, "steps.") || path == "job.execution"
	})
}

// fits reports whether a value of type got may be the value of a field of type
// want: a text takes the text form of any value, a float an int.
func fits(got, want reflect.Type) bool {
	switch {
	case got == nil:
		return false
	case got == want:
		return true
	case want.Kind() == reflect.String:
		return typeName(got) != ""
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

// typeName is how messages call a Go type; "" for what the file has no word for.
func typeName(t reflect.Type) string {
	switch {
	case t == nil:
		return "null"
	case t == reflect.TypeFor[time.Duration]():
		return "a duration"
	case t == reflect.TypeFor[time.Time]():
		return "a timestamp"
	case t == reflect.TypeFor[row.Date]():
		return "a date"
	case t == reflect.TypeFor[core.Size]():
		return "a size"
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

func parameterGoType(t core.ParameterType) reflect.Type {
	switch t {
	case core.TypeString, core.TypePath:
		return reflect.TypeFor[string]()
	case core.TypeInt:
		return reflect.TypeFor[int64]()
	case core.TypeFloat:
		return reflect.TypeFor[float64]()
	case core.TypeBool:
		return reflect.TypeFor[bool]()
	case core.TypeDate:
		return reflect.TypeFor[core.Date]()
	case core.TypeTimestamp:
		return reflect.TypeFor[time.Time]()
	case core.TypeDuration:
		return reflect.TypeFor[time.Duration]()
	}
	return nil
}
