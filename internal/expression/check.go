package expression

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type typed struct {
	kind              row.Kind
	nullable          bool
	eval              evalFn
	at                int    // where it begins in the text
	path              string // its name in messages, if it is a name
	fact              string // its key in facts, if it is a name
	constant, literal bool
	value             row.Value
	digits            string // as a literal of a float is written
	empty             bool   // [], which is a list of any kind
	opaque            reflect.Type
	opaquePath        []string
	// The names known not to be null once this (a bool) is true, or false.
	whenTrue, whenFalse facts
}

// A set of facts is never changed.
type facts map[string]bool

func (f facts) and(g facts) facts {
	if len(g) == 0 {
		return f
	}
	all := facts{}
	for _, set := range []facts{f, g} {
		for name := range set {
			all[name] = true
		}
	}
	return all
}

func (f facts) or(g facts) facts {
	both := facts{}
	for name := range f {
		if g[name] {
			both[name] = true
		}
	}
	return both
}

type checker struct {
	text  string
	root  node
	clock map[string]bool   // Today and Now, where they are allowed
	uses  map[string]evalFn // by path
	calendars
	zone   *time.Location // of the job; nil means UTC
	locals []local        // innermost last
	slots  int            // of all let names so far
}

type local struct {
	name  string
	value *typed
}

func (c *checker) compile() (*typed, error) {
	c.uses = map[string]evalFn{}
	if strings.TrimSpace(c.text) == "" {
		return nil, &Error{Msg: "the expression is empty"}
	}
	tree, err := c.parse()
	if err != nil {
		return nil, err
	}
	return c.check(tree, nil)
}

func (c *checker) parse() (ast.Node, error) {
	tree, err := parse(c.text)
	var at *file.Error
	switch {
	case err == nil:
		return tree, nil
	case !errors.As(err, &at):
		return nil, &Error{Msg: err.Error()}
	case strings.Contains(at.Message, "token EOF") || strings.Contains(at.Message, "unexpected end"):
		return nil, &Error{Offset: len(c.text), Msg: "the expression is incomplete"}
	}
	return nil, syntaxError(c.text, c.offset(at.From), at.Message)
}

// CheckSyntax reports a text that is not an expression, regardless of its names, as an *Error.
func CheckSyntax(text string) error {
	_, err := (&checker{text: text}).parse()
	return err
}

// parse guards against the parser's panics on odd input.
func parse(text string) (root ast.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("this is not an expression (%v)", r)
		}
	}()
	tree, err := parser.Parse(text)
	if err != nil {
		return nil, err
	}
	return tree.Node, nil
}

func (c *checker) offset(characters int) int {
	n := 0
	for i := range c.text {
		if n == characters {
			return i
		}
		n++
	}
	return len(c.text)
}

func (c *checker) at(n ast.Node) int { return c.offset(n.Location().From) }

func (c *checker) start(n ast.Node) int {
	switch n := n.(type) {
	case *ast.MemberNode:
		return c.start(n.Node)
	case *ast.ChainNode:
		return c.start(n.Node)
	case *ast.BinaryNode:
		return c.start(n.Left)
	case *ast.ConditionalNode:
		return c.start(n.Cond)
	case *ast.SliceNode:
		return c.start(n.Node)
	default:
		return c.at(n)
	}
}

func errorf(at int, format string, args ...any) error {
	return &Error{Offset: at, Msg: fmt.Sprintf(format, args...)}
}

func (c *checker) check(n ast.Node, known facts) (*typed, error) {
	t, err := c.checkNode(n, known)
	if err != nil {
		return nil, err
	}
	t.at = c.start(n)
	return t, nil
}

func (c *checker) checkNode(n ast.Node, known facts) (*typed, error) {
	switch n := n.(type) {
	case *ast.NilNode:
		return literal(row.Null, row.Value{}), nil
	case *ast.IntegerNode:
		return literal(row.Int, row.IntValue(int64(n.Value))), nil
	case *ast.FloatNode:
		return c.floatLiteral(n), nil
	case *ast.BoolNode:
		return literal(row.Bool, row.BoolValue(n.Value)), nil
	case *ast.StringNode:
		return literal(row.String, row.StringValue(n.Value)), nil
	case *ast.MemberNode:
		if t, err := c.element(n, known); t != nil || err != nil {
			return t, err
		}
		return c.name(n, known)
	case *ast.IdentifierNode, *ast.ChainNode:
		return c.name(n, known)
	case *ast.UnaryNode:
		return c.unary(n, known)
	case *ast.BinaryNode:
		return c.binary(n, known)
	case *ast.ConditionalNode:
		return c.conditional(n, known)
	case *ast.VariableDeclaratorNode:
		return c.let(n, known)
	case *ast.CallNode:
		callee, ok := n.Callee.(*ast.IdentifierNode)
		if !ok {
			return nil, c.noMethod(n)
		}
		return c.call(callee.Value, c.at(n), n.Arguments, known)
	case *ast.BuiltinNode:
		return c.call(n.Name, c.at(n), n.Arguments, known)
	case *ast.ArrayNode:
		return c.list(n, known)
	}
	return nil, errorf(c.at(n), "%s is not part of this language", syntaxName(n))
}

func (c *checker) noMethod(n *ast.CallNode) error {
	hint := "write function(value)"
	if member, ok := n.Callee.(*ast.MemberNode); ok {
		if name, ok := member.Property.(*ast.StringNode); ok {
			hint = cmp.Or(functionCure(name.Value), hint)
		}
	}
	return &Error{Offset: c.at(n), Msg: "a value has no methods", Hint: hint}
}

func syntaxName(n ast.Node) string {
	switch n.(type) {
	case *ast.SliceNode:
		return "value[from:to] (use substr(text, from, count))"
	case *ast.MapNode:
		return "a map {...}"
	case *ast.SequenceNode:
		return "a sequence of expressions"
	case *ast.BytesNode:
		return "a bytes literal"
	default:
		return "this"
	}
}

func literal(kind row.Kind, v row.Value) *typed {
	return &typed{kind: kind, nullable: v.IsNull(), value: v, constant: true, literal: true, eval: constantOf(v)}
}

func (c *checker) name(n ast.Node, known facts) (*typed, error) {
	found, path, err := c.resolve(n)
	if err != nil {
		return nil, err
	}
	if found.members != nil {
		return nil, errorf(c.start(n), "%s is not a value: name one of its fields%s", path, listed(found.names()))
	}
	t := *found.value
	if found.bind != nil {
		t.eval = found.bind(c.start(n))
		c.uses[t.path] = t.eval
		t.opaquePath = strings.Split(t.path, ".")
	}
	if known[t.fact] {
		t.nullable = false
	}
	return &t, nil
}

func (c *checker) resolve(n ast.Node) (node, string, error) {
	switch n := n.(type) {
	case *ast.ChainNode:
		return c.resolve(n.Node)
	case *ast.IdentifierNode:
		for i := len(c.locals) - 1; i >= 0; i-- {
			if c.locals[i].name == n.Value {
				return node{value: c.locals[i].value}, n.Value, nil
			}
		}
		found, ok := c.root.members(n.Value)
		if !ok || n.Value == Today {
			names := c.root.names()
			for _, l := range c.locals {
				names = append(names, l.name)
			}
			if cure := nameCure(n.Value, c.root); cure != "" {
				return node{}, "", &Error{Offset: c.at(n), Msg: "unknown name " + n.Value, Hint: cure}
			}
			return node{}, "", errorf(c.at(n), "unknown name %s%s", n.Value, nearest.Hint(n.Value, names))
		}
		return found, n.Value, nil
	case *ast.MemberNode:
		of, path, err := c.resolve(n.Node)
		if err != nil {
			return node{}, "", err
		}
		property, ok := n.Property.(*ast.StringNode)
		if !ok {
			return node{}, "", errorf(c.at(n), "a field name is a text: %s['name']", path)
		}
		if of.members == nil {
			e := &Error{Offset: c.at(n), Msg: fmt.Sprintf("%s is %s, which has no field %s", path, article(of.value.kind), property.Value)}
			if of.value.kind == row.JSONKind {
				e.Hint = fmt.Sprintf("write json_get(%s, '%s')", path, property.Value)
			}
			return node{}, "", e
		}
		found, ok := of.members(property.Value)
		if !ok {
			near := nearest.Hint(property.Value, of.names())
			e := &Error{Offset: c.at(n), Msg: fmt.Sprintf("%s has no field %s%s", path, property.Value, near)}
			if path == "params" && near == "" {
				e.Hint = "declare " + property.Value + " under `parameters`"
			}
			return node{}, "", e
		}
		return found, path + "." + property.Value, nil
	}
	return node{}, "", errorf(c.at(n), "only names have fields")
}

func (c *checker) conditional(n *ast.ConditionalNode, known facts) (*typed, error) {
	cond, err := c.checkBool(n.Cond, known)
	if err != nil {
		return nil, err
	}
	then, err := c.check(n.Exp1, known.and(cond.whenTrue))
	if err != nil {
		return nil, err
	}
	other, err := c.check(n.Exp2, known.and(cond.whenFalse))
	if err != nil {
		return nil, err
	}
	kind, err := unify(then, other)
	if err != nil {
		return nil, err
	}
	a, b, err := promoteBoth(then, other, kind)
	if err != nil {
		return nil, err
	}
	t, safe := &typed{kind: kind, nullable: then.nullable || other.nullable}, !mayFail(n.Cond)
	t.eval = func(f *Frame) (row.Value, error) {
		v, err := cond.eval(f)
		if isUnknown(err) && safe {
			first, err := a.eval(f)
			if err != nil {
				return row.Value{}, errUnknown
			}
			return onlyIf(b.eval, f, first)
		}
		if err != nil {
			return v, err
		}
		if v.Bool() {
			return a.eval(f)
		}
		return b.eval(f)
	}
	return t, fold(t, cond, then, other)
}

func (c *checker) let(n *ast.VariableDeclaratorNode, known facts) (*typed, error) {
	if _, taken := c.root.members(n.Name); taken {
		return nil, errorf(c.at(n), "%s is already defined: let needs another name", n.Name)
	}
	for _, l := range c.locals {
		if l.name == n.Name {
			return nil, errorf(c.at(n), "let %s is defined twice", n.Name)
		}
	}
	value, err := c.check(n.Value, known)
	if err != nil {
		return nil, err
	}
	if value.kind == kindOpaque {
		return nil, value.unusable()
	}
	slot := c.slots
	c.slots++
	name := *value
	name.path, name.fact = n.Name, fmt.Sprintf("%s#%d", n.Name, slot)
	name.eval = func(f *Frame) (row.Value, error) {
		if f.unset[slot] {
			return row.Value{}, errUnknown
		}
		return f.locals[slot], nil
	}
	if value.constant {
		name.eval = value.eval
	}
	c.locals = append(c.locals, local{n.Name, &name})
	defer func() { c.locals = c.locals[:len(c.locals)-1] }()
	body, err := c.check(n.Expr, known)
	if err != nil || value.constant {
		return body, err
	}
	t, safe := *body, !mayFail(n.Value)
	t.constant = false
	t.eval = func(f *Frame) (row.Value, error) {
		v, err := value.eval(f)
		if isUnknown(err) && safe {
			f.unset[slot] = true
			return body.eval(f)
		}
		if err != nil {
			return v, err
		}
		f.setLocal(slot, v)
		return body.eval(f)
	}
	return &t, nil
}

func (c *checker) checkBool(n ast.Node, known facts) (*typed, error) {
	t, err := c.checkValue(n, known)
	if err == nil && t.kind != row.Bool {
		err = errorf(t.at, "a bool is needed here, not %s", article(t.kind))
	}
	return t, err
}

func (c *checker) checkValue(n ast.Node, known facts) (*typed, error) {
	t, err := c.check(n, known)
	if err != nil {
		return nil, err
	}
	return t, t.required()
}

func (t *typed) required() error {
	switch {
	case t.kind == kindOpaque:
		return t.unusable()
	case t.kind == row.Null:
		return errorf(t.at, "nil cannot be used here")
	case !t.nullable:
		return nil
	case t.path == "":
		return errorf(t.at, "this may be null: put it in parentheses and add a value for null, (...) ?? %s", sample(t.kind))
	}
	return errorf(t.at, "%s may be null: write %s ?? %s, or test it first (%s != nil and ...)", t.path, t.path, sample(t.kind), t.path)
}

func (t *typed) unusable() error {
	return errorf(t.at, "%s is a structured value (%v): it can only be passed as a whole", t.path, t.opaque)
}

func unify(a, b *typed) (row.Kind, error) {
	switch {
	case a.kind == kindOpaque:
		return 0, a.unusable()
	case b.kind == kindOpaque:
		return 0, b.unusable()
	case a.kind == b.kind || b.kind == row.Null:
		return a.kind, nil
	case a.kind == row.Null, a.empty && b.kind.IsList():
		return b.kind, nil
	case b.empty && a.kind.IsList():
		return a.kind, nil
	case isNumber(a.kind) && isNumber(b.kind):
		return unifyNumbers(a, b)
	}
	return 0, errorf(b.at, "the alternatives are %s and %s", article(a.kind), article(b.kind))
}

// fold computes t now if all its parts are constant. With values of the launch a failure stays an
// evaluation error: it may be in a branch that is never taken.
func fold(t *typed, parts ...*typed) error {
	literals := true
	for _, p := range parts {
		if !p.constant {
			return nil
		}
		literals = literals && p.literal
	}
	v, err := t.eval(&Frame{})
	if err != nil {
		if failed, ok := err.(*EvalError); ok && literals {
			return &Error{Offset: failed.Offset, Msg: failed.Msg}
		}
		return nil
	}
	t.constant, t.literal, t.value, t.eval = true, literals, v, constantOf(v)
	return nil
}
