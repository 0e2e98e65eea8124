package jobfile

import (
	"cmp"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// outcomeFields are the names of `job` that describe how the flow ended.
func outcomeFields() []string { return []string{"status", "exit", "error", "failed_step"} }

// location is the location of an expression. It decides which names are known.
type location struct {
	// element is the element at the location; nil means the job.
	element *elementDef
	// step is the step of the component, condition or gate: its own numbers are not among `steps`.
	step string
	// ownNumbers means that the numbers of that step have no prefix: its `expect`.
	ownNumbers bool
	// part are the names of `part`; nil means that it is not available.
	part map[string]expression.Var
	// unknown means that there is a partition with a mistake.
	unknown bool
	// beforeFlow means that nothing has run yet: the listeners of the job.
	beforeFlow bool
	// config means the config of a component.
	config bool
	// afterFlow means that the flow is over: `finally`, and the job's `expect`.
	afterFlow bool
}

func (p location) knowsOutcome() bool {
	return p.afterFlow || p.element != nil && p.element.list.finally
}

// scopes knows the names of expressions at each location of a file.
type scopes struct {
	*checker
	stepNames []string
	isStep    map[string]bool // the same
	// invalidTasklets are the steps with a mistake in their tasklet: their results are unknown.
	invalidTasklets []string
	stepRefs        []stepRef
	// brokenUses means that the use of a template is wrong, so that not all elements are known.
	brokenUses bool
}

// names are the names that an expression may use at its location.
type names struct {
	scope expression.Scope
	// refusal returns why a name of the scope cannot be used, or ""; it may be nil.
	refusal func(path string) string
	// unknown are prefixes of names with unknown types, because their definition has a mistake.
	unknown []string
	// steps is called with every step that an expression names; may be nil.
	steps func(c *yamlfile.Collector, n *yamlfile.Node, offset int, step string)
}

// scope returns the names for ${...} and conditions at a location. Names that are known only elsewhere are
// included, for a message that says where.
func (l *scopes) scope(p location) *names {
	text := expression.Var{Type: reflect.TypeFor[string]()}
	job := map[string]expression.Var{"name": text, "execution": {Type: reflect.TypeFor[int64]()}, "instance": {Type: reflect.TypeFor[int64]()}, "time": {Type: reflect.TypeFor[time.Time]()}}
	for _, name := range outcomeFields() {
		job[name] = text
	}
	scope := expression.Scope{
		"params":  {Fields: l.paramVars()},
		"job":     {Fields: job},
		"env":     {Open: true},
		"steps":   l.stepVars(p.step),
		"context": {Open: true, Nullable: true},
		"part":    {Open: true},
	}
	if p.part != nil {
		scope["part"] = expression.Var{Fields: p.part}
	}
	if p.ownNumbers {
		for name, v := range l.ownVars(p.step) {
			scope[name] = v
		}
	}
	l.file.clock.addTo(scope)
	for _, name := range []string{"with", "secret"} {
		scope[name] = expression.Var{Open: true}
	}
	refusal := func(path string) string {
		if name, is := strings.CutPrefix(path, "params."); is && !p.config && l.file.isSecret(name) {
			return path + " is secret, and is only known in the config of a component, since what stands here is stored and shown"
		}
		return p.refusal(path)
	}
	return &names{scope: scope, refusal: refusal, unknown: l.unknown(p), steps: func(c *yamlfile.Collector, n *yamlfile.Node, offset int, step string) {
		l.stepRefs = append(l.stepRefs, stepRef{node: n, offset: offset, step: step, location: p})
	}}
}

// unknown are the prefixes of names that depend on an invalid partitioner or tasklet.
func (l *scopes) unknown(p location) []string {
	var list []string
	if p.unknown {
		list = append(list, "part.")
	}
	if l.brokenUses {
		list = append(list, "steps.")
	}
	for _, name := range l.invalidTasklets {
		list = append(list, "steps."+name+".out.")
		if p.ownNumbers && p.step == name {
			list = append(list, "out.")
		}
	}
	return list
}

// refusal returns why a name cannot be used at the location.
func (p location) refusal(path string) string {
	head, rest, _ := strings.Cut(path, ".")
	switch {
	case head == "secret" && !p.config:
		return path + " is only known in the config of a component, since what stands here is stored and shown: write ${" + path + "} there"
	case head == "with":
		return path + " is only known in the steps of a template, as ${" + path + "}"
	case head == "job" && slices.Contains(outcomeFields(), rest) && !p.knowsOutcome():
		return path + " is only known in finally and in the expect of the job"
	case head == "part" && p.part == nil && !p.unknown:
		return path + " is only known in the components of a step with partition"
	}
	return ""
}

func (l *scopes) paramVars() map[string]expression.Var {
	vars := map[string]expression.Var{}
	for _, p := range l.file.specs {
		vars[p.Name] = expression.Var{Type: parameterGoType(p.Type), Nullable: !p.Required && p.Default == nil}
	}
	return vars
}

// stepFields are the numbers of steps.NAME, named as everywhere.
func stepFields() []string {
	return []string{"read", "filtered", "written", "skipped", "read_skipped", "process_skipped", "write_skipped", "commits", "rollbacks"}
}

// balancedName reports whether the numbers of a step account for every item (rule C11).
const balancedName = "balanced"

// stepVars is the namespace of the steps. Each is made on demand: making all of them at each location would
// take quadratic time.
func (l *scopes) stepVars(except string) expression.Var {
	return expression.Var{
		Find: func(name string) (expression.Var, bool) {
			if name == except || !l.isStep[name] {
				return expression.Var{}, false
			}
			fields := l.ownVars(name)
			fields["status"] = expression.Var{Type: reflect.TypeFor[string]()}
			return expression.Var{Fields: fields}, true
		},
		Names: func() []string {
			return slices.DeleteFunc(slices.Clone(l.stepNames), func(name string) bool { return name == except })
		},
	}
}

// ownVars are the names of a step's own gate.
func (l *scopes) ownVars(step string) map[string]expression.Var {
	fields := map[string]expression.Var{
		balancedName: {Type: reflect.TypeFor[bool]()},
		"duration":   {Type: reflect.TypeFor[time.Duration]()},
		"exit":       {Type: reflect.TypeFor[string]()},
		"out":        l.file.outVar(step),
	}
	for _, f := range stepFields() {
		fields[f] = expression.Var{Type: reflect.TypeFor[int64]()}
	}
	return fields
}

// outVar types the named results of a step: by the row type in its tasklet's config under `out`, or as texts.
func (f *fileDef) outVar(step string) expression.Var {
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

// env returns the names for expressions over items at a location, at load.
func (l *scopes) env(p location) registry.ExpressionEnv {
	params := map[string]reflect.Type{}
	for name, v := range l.paramVars() {
		if l.file.isSecret(name) { // rows would show it
			continue
		}
		params[name] = v.Type
		if v.Nullable {
			params[name] = reflect.PointerTo(v.Type)
		}
	}
	env := registry.ExpressionEnv{Zone: l.file.clock.zone, Calendars: l.file.clock.calendars, Types: map[string]map[string]reflect.Type{
		"params": params,
		// job.execution is not among them: the rows of a restart would differ.
		"job": {"name": reflect.TypeFor[string](), "instance": reflect.TypeFor[int64](), "time": reflect.TypeFor[time.Time]()},
	}}
	if p.part != nil {
		part := map[string]reflect.Type{}
		for name, v := range p.part {
			part[name] = v.Type
		}
		env.Types["part"] = part
	}
	return env
}

var errReported = errors.New("reported")

func compileHole(c *yamlfile.Collector, n *yamlfile.Node, h hole, in *names) (*expression.Program, error) {
	if h.text == "" {
		c.AddAt(n, h.offset, "${} is empty", "a literal ${ is written $${")
		return nil, errReported
	}
	return in.compile(c, n, h.text, h.offset, "${"+h.text+"}: ")
}

// compile compiles an expression at an offset of a node's text; what begins its messages.
func (in *names) compile(c *yamlfile.Collector, n *yamlfile.Node, text string, offset int, what string) (*expression.Program, error) {
	prog, err := expression.Compile(text, in.scope)
	if err != nil {
		if slices.ContainsFunc(in.unknown, func(begin string) bool { return strings.Contains(text, begin) }) {
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
		c.AddAt(n, offset+at, what+err.Error(), expressionHint(n, where))
		return nil, errReported
	}
	for _, path := range prog.Vars() {
		if slices.ContainsFunc(in.unknown, func(begin string) bool { return strings.HasPrefix(path, begin) }) {
			return nil, errReported // where it should be known
		}
		if in.refusal != nil {
			if why := in.refusal(path); why != "" {
				c.AddAt(n, offset, what+why, "")
				return nil, errReported
			}
		}
		if rest, is := strings.CutPrefix(path, "steps."); is && in.steps != nil {
			step, _, _ := strings.Cut(rest, ".")
			in.steps(c, n, offset, step)
		}
	}
	return prog, nil
}

// reportRefusal reports the first name of a text that does not compile but is known in other locations: that
// matters more than its type.
func (in *names) reportRefusal(c *yamlfile.Collector, n *yamlfile.Node, text string, offset int, what string) bool {
	if in.refusal == nil {
		return false
	}
	for _, at := range dotted.FindAllStringIndex(text, -1) {
		if why := in.refusal(text[at[0]:at[1]]); why != "" {
			c.AddAt(n, offset+at[0], what+why, "")
			return true
		}
	}
	return false
}

var dotted = regexp.MustCompile(`\b[a-z]+\.[A-Za-z_]+`)

// needsStep reports whether a program uses values that are known only when its step starts.
func needsStep(prog *expression.Program) bool {
	return slices.ContainsFunc(prog.Vars(), func(path string) bool {
		head, rest, _ := strings.Cut(path, ".")
		return head != "params" && head != "env" && head != "secret" && path != "job.name" && rest != ""
	})
}

// fits reports whether a value of type got fits a field of type want: a text takes the text form of any
// value, a float an int.
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

// typeName is the name of a Go type in messages; "" for a type that the file has no word for.
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
	case t == reflect.TypeFor[row.Decimal]():
		return "a decimal"
	case t == reflect.TypeFor[registry.Size]():
		return "a size"
	}
	if kind, ok := item.TextKind(t); ok {
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

func parameterGoType(t core.ParameterType) reflect.Type {
	switch t {
	case core.TypeString, core.TypePath:
		return reflect.TypeFor[string]()
	case core.TypeInt:
		return reflect.TypeFor[int64]()
	case core.TypeFloat:
		return reflect.TypeFor[float64]()
	case core.TypeDecimal:
		return reflect.TypeFor[row.Decimal]()
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
