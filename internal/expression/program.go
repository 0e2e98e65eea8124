package expression

import (
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Program is a checked expression over the names of a Scope. It is safe for
// concurrent use.
type Program struct {
	text   string
	root   *typed
	uses   []string
	clock  bool     // it uses today() or now()
	opaque []string // the path of the one variable that is the whole expression
}

// Compile checks text against the scope. An error is an *Error.
func Compile(text string, scope Scope) (*Program, error) {
	c := &checker{text: text, root: scopeNode(Var{Fields: scope}, nil), clock: map[string]bool{}, calendars: scope[Calendars].Calendars, zone: zoneOf(scope[Zone].Zone)}
	for _, name := range []string{Today, Now} {
		_, c.clock[name] = scope[name]
	}
	root, err := c.compile()
	if err != nil {
		return nil, err
	}
	p := &Program{text: text, root: root, uses: sortedNames(c.uses)}
	for _, name := range []string{Today, Now} {
		_, used := c.uses[name]
		p.clock = p.clock || used
	}
	if root.kind == kindOpaque {
		p.opaque = root.opaquePath
	}
	return p, nil
}

// UsesClock reports whether the value depends on the time of its computation: on Today or Now.
func (p *Program) UsesClock() bool { return p.clock }

// Text returns the expression as written.
func (p *Program) Text() string { return p.text }

// Type returns the type of the result; nil for nil itself.
func (p *Program) Type() reflect.Type {
	if p.opaque != nil {
		return p.root.opaque
	}
	return GoType(p.root.kind)
}

// Nullable reports whether the result may be nil.
func (p *Program) Nullable() bool { return p.root.nullable }

// Vars returns the dotted paths of the variables used, sorted.
func (p *Program) Vars() []string { return p.uses }

// Eval computes the expression over vars; the result is of Type, or nil, an
// error an *EvalError.
func (p *Program) Eval(vars map[string]any) (any, error) {
	if p.opaque != nil {
		x, err := find(vars, p.opaque)
		if err != nil {
			return nil, &EvalError{Text: p.text, Msg: err.Error()}
		}
		return x, nil
	}
	v, err := p.root.eval(&Frame{vars: vars})
	if err != nil {
		return nil, inText(p.text, err)
	}
	return toGo(v, p.root.kind), nil
}

// EvalError reports that an expression failed on its values.
type EvalError struct {
	Text   string
	Offset int
	Msg    string
}

// Error names the expression, the 1-based character and the reason.
func (e *EvalError) Error() string {
	at := len([]rune(e.Text[:min(e.Offset, len(e.Text))])) + 1
	return fmt.Sprintf("expression `%s`, character %d: %s", e.Text, at, e.Msg)
}

func failf(at int, format string, args ...any) error {
	return &EvalError{Offset: at, Msg: fmt.Sprintf(format, args...)}
}

func inText(text string, err error) error {
	if e, ok := err.(*EvalError); ok {
		e.Text = text
		return e
	}
	return &EvalError{Text: text, Msg: err.Error()}
}

// evalFn must not keep f.
type evalFn func(f *Frame) (row.Value, error)

func constantOf(v row.Value) evalFn {
	return func(*Frame) (row.Value, error) { return v, nil }
}
