package expression

import (
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type function struct {
	name      string
	usage     string
	minArgs   int // arguments
	maxArgs   int
	construct func(c *call) (*typed, error)
}

// Functions returns the usage of every function, sorted by name: "round(x, places)".
func Functions() []string {
	all := functions()
	usages := make([]string, 0, len(all))
	for _, name := range sortedNames(all) {
		usages = append(usages, all[name].usage)
	}
	usages = append(usages, tryUsage, joinUsage, isBusinessDayUsage, businessDayUsage)
	slices.Sort(usages)
	return append(usages, Today, Now)
}

func functions() map[string]function {
	all := map[string]function{}
	for _, group := range [][]function{numberFunctions(), textFunctions(), partFunctions(), patternFunctions(), jsonFunctions(), listFunctions(), timeFunctions(), calendarFunctions(), conversions()} {
		for _, f := range group {
			all[f.name] = f
		}
	}
	return all
}

type call struct {
	function
	at   int
	args []*typed
	home *time.Location // the time zone of the job; nil means UTC
}

func (c *checker) call(name string, at int, nodes []ast.Node, known facts) (*typed, error) {
	if name == "today" || name == "now" {
		return c.callClock(at, name, nodes)
	}
	if t, err := c.special(name, at, nodes, known); t != nil || err != nil {
		return t, err
	}
	all := functions()
	f, ok := all[name]
	if !ok {
		return nil, unknownFunction(at, name, append(sortedNames(all), "try", "join", "business_day", "is_business_day"))
	}
	if len(nodes) < f.minArgs || len(nodes) > f.maxArgs {
		return nil, errorf(at, "wrong arguments of %s: %s", name, f.usage)
	}
	use := &call{function: f, at: at, home: c.zone}
	for _, n := range nodes {
		arg, err := c.checkValue(n, known)
		if err != nil {
			return nil, err
		}
		use.args = append(use.args, arg)
	}
	t, err := f.construct(use)
	if err != nil {
		return nil, err
	}
	return t, fold(t, use.args...)
}

func unknownFunction(at int, name string, names []string) error {
	e := &Error{Offset: at, Msg: "unknown function " + name}
	if name == "now" {
		e.Msg += ": an expression has the same result whenever it is evaluated"
		e.Hint = "pass the time as a parameter, such as params.day"
		return e
	}
	if e.Hint = functionCure(name); e.Hint == "" {
		e.Hint = "there is " + strings.Join(names, ", ")
		if near := nearest.Name(name, names); near != "" {
			e.Hint = "did you mean " + near + "?"
		}
	}
	return e
}

// callClock reads Today or Now, which only some scopes have: a restart tomorrow must give the same
// answers.
func (c *checker) callClock(at int, name string, nodes []ast.Node) (*typed, error) {
	variable, kind, why := Today, row.DateKind, ": a restart tomorrow must see the same day"
	if name == "now" {
		variable, kind = Now, row.Timestamp
		why = ", because any other expression has the same result whenever it is evaluated: write job.time for the time of the job"
	}
	if !c.clock[variable] {
		return nil, errorf(at, "%s is allowed only in the default of a parameter%s", variable, why)
	}
	if len(nodes) > 0 {
		return nil, errorf(at, "%s takes no arguments", variable)
	}
	c.uses[variable] = lookup([]string{variable}, kind, false)(at)
	return &typed{kind: kind, eval: c.uses[variable]}, nil
}

func (c *call) is(i int, kinds ...row.Kind) bool {
	for _, k := range kinds {
		if c.args[i].kind == k {
			return true
		}
	}
	return false
}

func (c *call) want(i int, kinds ...row.Kind) error {
	if c.is(i, kinds...) {
		return nil
	}
	names := make([]string, len(kinds))
	for j, k := range kinds {
		names[j] = article(k)
	}
	return errorf(c.args[i].at, "%s needs %s here, not %s: %s", c.name, strings.Join(names, " or "), article(c.args[i].kind), c.usage)
}

func (c *call) wantAll(kinds ...row.Kind) error {
	for i := range c.args {
		if err := c.want(i, kinds[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) apply1(kind row.Kind, rule func(a row.Value) (row.Value, error)) *typed {
	at, eval := c.at, c.args[0].eval
	return &typed{kind: kind, eval: func(f *Frame) (row.Value, error) {
		a, err := eval(f)
		if err != nil {
			return a, err
		}
		v, err := rule(a)
		if err != nil {
			return row.Value{}, failf(at, "%v", err)
		}
		return v, nil
	}}
}

func (c *call) apply2(kind row.Kind, rule func(a, b row.Value) (row.Value, error)) *typed {
	at, first, second := c.at, c.args[0].eval, c.args[1].eval
	return &typed{kind: kind, eval: func(f *Frame) (row.Value, error) {
		a, err := first(f)
		if err != nil {
			return a, err
		}
		b, err := second(f)
		if err != nil {
			return b, err
		}
		v, err := rule(a, b)
		if err != nil {
			return row.Value{}, failf(at, "%v", err)
		}
		return v, nil
	}}
}

func (c *call) apply3(kind row.Kind, rule func(a, b, d row.Value) (row.Value, error)) *typed {
	at, first, second, third := c.at, c.args[0].eval, c.args[1].eval, c.args[2].eval
	return &typed{kind: kind, eval: func(f *Frame) (row.Value, error) {
		a, err := first(f)
		if err != nil {
			return a, err
		}
		b, err := second(f)
		if err != nil {
			return b, err
		}
		d, err := third(f)
		if err != nil {
			return d, err
		}
		v, err := rule(a, b, d)
		if err != nil {
			return row.Value{}, failf(at, "%v", err)
		}
		return v, nil
	}}
}
