package expression

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func (c *checker) unary(n *ast.UnaryNode, known facts) (*typed, error) {
	switch n.Operator {
	case "not", "!":
		of, err := c.checkBool(n.Node, known)
		if err != nil {
			return nil, err
		}
		t := &typed{kind: row.Bool, whenTrue: of.whenFalse, whenFalse: of.whenTrue}
		t.eval = func(f *Frame) (row.Value, error) {
			v, err := of.eval(f)
			return row.BoolValue(!v.Bool()), err
		}
		return t, fold(t, of)
	case "-":
		of, err := c.checkValue(n.Node, known)
		if err != nil {
			return nil, err
		}
		zero := literal(row.Int, row.IntValue(0))
		if of.kind == row.Float {
			// 0 - 0.0 would lose the sign, but rows do not distinguish -0 from 0.
			zero = literal(row.Float, row.FloatValue(0))
		}
		if !isNumber(of.kind) && of.kind != kindDuration {
			return nil, errorf(c.at(n), "- needs a number, not %s", article(of.kind))
		}
		if of.kind != row.DecimalKind { // which an int meets as it is
			zero.kind = of.kind
		}
		t, err := arithmetic("-", c.at(n), zero, of)
		if err == nil && of.digits != "" {
			t.digits = "-" + of.digits
		}
		return t, err
	case "+":
		of, err := c.checkValue(n.Node, known)
		if err == nil && !isNumber(of.kind) {
			err = errorf(c.at(n), "+ needs a number, not %s", article(of.kind))
		}
		return of, err
	}
	return nil, errorf(c.at(n), "the operator %s is not part of this language", n.Operator)
}

func (c *checker) binary(n *ast.BinaryNode, known facts) (*typed, error) {
	switch n.Operator {
	case "and", "&&", "or", "||":
		return c.logic(n, known)
	case "??":
		return c.coalesce(n, known)
	case "in":
		return c.in(n, known)
	case "..":
		return nil, errorf(c.at(n), "from..to is allowed only after in")
	case "==", "!=":
		if t, err := c.nilTest(n, known); t != nil || err != nil {
			return t, err
		}
	}
	left, err := c.checkValue(n.Left, known)
	if err != nil {
		return nil, err
	}
	right, err := c.checkValue(n.Right, known)
	if err != nil {
		return nil, err
	}
	switch n.Operator {
	case "==", "!=", "<", "<=", ">", ">=":
		return compare(n.Operator, c.at(n), left, right)
	case "contains", "startsWith", "endsWith", "matches":
		return search(n.Operator, left, right)
	case "+", "-", "*", "/", "%", "**", "^":
		return arithmetic(n.Operator, c.at(n), left, right)
	}
	return nil, errorf(c.at(n), "the operator %s is not part of this language", n.Operator)
}

func (c *checker) logic(n *ast.BinaryNode, known facts) (*typed, error) {
	isAnd := n.Operator == "and" || n.Operator == "&&"
	left, err := c.checkBool(n.Left, known)
	if err != nil {
		return nil, c.asConcat(n, known, err)
	}
	learned := left.whenFalse
	if isAnd {
		learned = left.whenTrue
	}
	right, err := c.checkBool(n.Right, known.and(learned))
	if err != nil {
		return nil, err
	}
	t, safe := &typed{kind: row.Bool}, !mayFail(n.Left)
	if isAnd {
		t.whenTrue, t.whenFalse = left.whenTrue.and(right.whenTrue), left.whenFalse.or(right.whenFalse)
	} else {
		t.whenTrue, t.whenFalse = left.whenTrue.or(right.whenTrue), left.whenFalse.and(right.whenFalse)
	}
	t.eval = func(f *Frame) (row.Value, error) {
		v, err := left.eval(f)
		if isUnknown(err) && safe {
			return onlyIf(right.eval, f, row.BoolValue(!isAnd))
		}
		if err != nil || v.Bool() != isAnd {
			return v, err
		}
		return right.eval(f)
	}
	return t, fold(t, left, right)
}

func (c *checker) asConcat(n *ast.BinaryNode, known facts, err error) error {
	if left, wrong := c.check(n.Left, known); n.Operator == "||" && wrong == nil && left.kind == row.String {
		return &Error{Offset: left.at, Msg: err.Error(), Hint: "|| is or; + joins texts: a + b"}
	}
	return err
}

func (c *checker) coalesce(n *ast.BinaryNode, known facts) (*typed, error) {
	left, err := c.check(n.Left, known)
	if err != nil {
		return nil, err
	}
	right, err := c.check(n.Right, known)
	if err != nil {
		return nil, err
	}
	kind, err := unify(left, right)
	if err != nil {
		return nil, err
	}
	a, b, err := promoteBoth(left, right, kind)
	if err != nil {
		return nil, err
	}
	t := &typed{kind: kind, nullable: left.nullable && right.nullable}
	t.eval = func(f *Frame) (row.Value, error) {
		v, err := a.eval(f)
		if err != nil || !v.IsNull() {
			return v, err
		}
		return b.eval(f)
	}
	return t, fold(t, left, right)
}

func (c *checker) nilTest(n *ast.BinaryNode, known facts) (*typed, error) {
	for _, side := range []ast.Node{n.Left, n.Right} {
		if name, ok := side.(*ast.IdentifierNode); ok && foreignNull(name.Value) {
			if _, _, err := c.resolve(name); err != nil {
				return nil, err
			}
		}
	}
	tested := n.Left
	if _, ok := n.Left.(*ast.NilNode); ok {
		tested = n.Right
	} else if _, ok := n.Right.(*ast.NilNode); !ok {
		return nil, nil
	}
	of, err := c.check(tested, known)
	if err != nil {
		return nil, err
	}
	if of.kind == kindOpaque {
		return nil, of.unusable()
	}
	wantNull := n.Operator == "=="
	t := &typed{kind: row.Bool}
	if of.fact != "" {
		learned := facts{of.fact: true}
		if wantNull {
			t.whenFalse = learned
		} else {
			t.whenTrue = learned
		}
	}
	t.eval = func(f *Frame) (row.Value, error) {
		v, err := of.eval(f)
		return row.BoolValue(v.IsNull() == wantNull), err
	}
	return t, fold(t, of)
}

func comparable(op string, at int, left, right *typed) error {
	if _, err := unify(left, right); err == nil {
		return nil
	}
	help := ""
	switch {
	case isPair(left, right, row.DateKind, row.String):
		help = ": write date('2026-01-31')"
	case isPair(left, right, row.Timestamp, row.String):
		help = ": write timestamp('2026-01-31T00:00:00Z')"
	case isPair(left, right, row.DateKind, row.Timestamp):
		help = ": write date(x) or timestamp(x)"
	case isPair(left, right, row.String, row.Int):
		help = ": write int(x) or string(x)"
	case isPair(left, right, row.String, row.Float):
		help = ": write float(x) or string(x)"
	case isPair(left, right, row.String, row.DecimalKind):
		help = ": write decimal(x) or string(x)"
	case isPair(left, right, row.UUIDKind, row.String):
		help = ": write uuid('...')"
	case isPair(left, right, row.BytesKind, row.String):
		help = ": write decode('...', 'hex'), or encode(x, 'hex')"
	case left.kind == row.JSONKind || right.kind == row.JSONKind:
		help = ": write json_get(x, 'a.b'), which is a text, or json('...')"
	case left.kind.IsList() != right.kind.IsList():
		help = ": write x in list, or list contains x"
	case isPair(left, right, row.Float, row.DecimalKind):
		help = ": write decimal(x) or float(x)"
	}
	return errorf(at, "%s cannot compare %s and %s%s", op, article(left.kind), article(right.kind), help)
}

func isPair(a, b *typed, k, l row.Kind) bool {
	return a.kind == k && b.kind == l || a.kind == l && b.kind == k
}

func compare(op string, at int, left, right *typed) (*typed, error) {
	if err := comparable(op, at, left, right); err != nil {
		return nil, err
	}
	left, right, err := exactBoth(left, right)
	if err != nil {
		return nil, err
	}
	if err := ordered(op, at, left.kind); err != nil && op != "==" && op != "!=" {
		return nil, err
	}
	holds := comparisons(op)
	order := orderOf(left.kind, right.kind)
	t := &typed{kind: row.Bool}
	t.eval = func(f *Frame) (row.Value, error) {
		x, err := left.eval(f)
		if err != nil {
			return x, err
		}
		y, err := right.eval(f)
		if err != nil {
			return y, err
		}
		return row.BoolValue(holds(order(x, y))), nil
	}
	return t, fold(t, left, right)
}

func ordered(op string, at int, kind row.Kind) error {
	switch kind {
	case row.Bool:
		return errorf(at, "%s cannot compare bools", op)
	case row.JSONKind:
		return errorf(at, "%s cannot compare json, which has no order: write json_get(x, 'a.b'), which is a text", op)
	default:
		if kind.IsList() {
			return errorf(at, "%s cannot compare lists, which have no order: write len(x), or x[0]", op)
		}
		return nil
	}
}

func comparisons(op string) func(order int) bool {
	switch op {
	case "==":
		return func(o int) bool { return o == 0 }
	case "!=":
		return func(o int) bool { return o != 0 }
	case "<":
		return func(o int) bool { return o < 0 }
	case "<=":
		return func(o int) bool { return o <= 0 }
	case ">":
		return func(o int) bool { return o > 0 }
	default:
		return func(o int) bool { return o >= 0 }
	}
}

// A NaN (only a Go struct can have one) is less than every number and equal to itself.
func orderOf(left, right row.Kind) func(a, b row.Value) int {
	if left != right {
		return compareNumbers
	}
	if left.IsList() {
		return row.Compare
	}
	switch left {
	case row.JSONKind, row.UUIDKind, row.BytesKind:
		return row.Compare
	case row.String:
		return func(a, b row.Value) int { return strings.Compare(a.Str(), b.Str()) }
	case row.Float:
		return func(a, b row.Value) int { return cmp.Compare(a.Float(), b.Float()) }
	case row.DecimalKind:
		return func(a, b row.Value) int { return a.Decimal().Cmp(b.Decimal()) }
	case row.DateKind:
		return func(a, b row.Value) int { return cmp.Compare(a.Date(), b.Date()) }
	case row.Timestamp:
		return func(a, b row.Value) int { return a.Time().Compare(b.Time()) }
	case row.Bool:
		return func(a, b row.Value) int {
			if a.Bool() == b.Bool() {
				return 0
			}
			return 1
		}
	default: // ints and durations
		return func(a, b row.Value) int { return cmp.Compare(a.Int(), b.Int()) }
	}
}

func search(op string, left, right *typed) (*typed, error) {
	if op == "contains" && left.kind.IsList() {
		return has(left, right)
	}
	for _, t := range []*typed{left, right} {
		if t.kind != row.String {
			return nil, errorf(t.at, "%s needs strings, not %s", op, article(t.kind))
		}
	}
	var found func(text, part string) bool
	switch op {
	case "contains":
		found = strings.Contains
	case "startsWith":
		found = strings.HasPrefix
	case "endsWith":
		found = strings.HasSuffix
	default:
		return matches(left, right)
	}
	t := &typed{kind: row.Bool}
	t.eval = func(f *Frame) (row.Value, error) {
		text, err := left.eval(f)
		if err != nil {
			return text, err
		}
		part, err := right.eval(f)
		return row.BoolValue(found(text.Str(), part.Str())), err
	}
	return t, fold(t, left, right)
}

func matches(left, right *typed) (*typed, error) {
	at := right.at
	pattern := func(f *Frame) (*regexp.Regexp, error) {
		v, err := right.eval(f)
		if err != nil {
			return nil, err
		}
		re, err := regexp.Compile(v.Str())
		if err != nil {
			return nil, failf(at, "%v", err)
		}
		return re, nil
	}
	if right.constant {
		re, err := pattern(&Frame{})
		if failed, ok := err.(*EvalError); ok {
			return nil, &Error{Offset: failed.Offset, Msg: failed.Msg}
		}
		pattern = func(*Frame) (*regexp.Regexp, error) { return re, nil }
	}
	t := &typed{kind: row.Bool}
	t.eval = func(f *Frame) (row.Value, error) {
		text, err := left.eval(f)
		if err != nil {
			return text, err
		}
		re, err := pattern(f)
		if err != nil {
			return row.Value{}, err
		}
		return row.BoolValue(re.MatchString(text.Str())), nil
	}
	return t, fold(t, left, right)
}
