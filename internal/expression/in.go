package expression

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func (c *checker) in(n *ast.BinaryNode, known facts) (*typed, error) {
	left, err := c.checkValue(n.Left, known)
	if err != nil {
		return nil, err
	}
	if span, ok := n.Right.(*ast.BinaryNode); ok && span.Operator == ".." {
		return c.inRange(span, left, known)
	}
	list, ok := n.Right.(*ast.ArrayNode)
	if !ok {
		t, err := c.checkValue(n.Right, known)
		if err == nil && !t.kind.IsList() {
			err = errorf(t.at, "in needs a list [a, b, c] or a range from..to, not %s", article(t.kind))
		}
		if err != nil {
			return nil, err
		}
		return has(t, left)
	}
	parts, safe := []*typed{left}, true
	for _, element := range list.Nodes {
		safe = safe && !mayFail(element)
		t, err := c.checkValue(element, known)
		if err != nil {
			return nil, err
		}
		if err := comparable("in", t.at, left, t); err != nil {
			return nil, err
		}
		if left.kind == row.DecimalKind {
			if t, err = promote(t, left.kind); err != nil {
				return nil, err
			}
		}
		parts = append(parts, t)
	}
	t := &typed{kind: row.Bool, eval: inList(parts, safe)}
	return t, fold(t, parts...)
}

func inList(parts []*typed, safe bool) evalFn {
	evals, set, kind := make([]evalFn, len(parts)), map[row.Value]struct{}{}, parts[0].kind
	orders := make([]func(a, b row.Value) int, len(parts))
	constants := kind != row.Float // two NaNs are equal, but may be two keys
	for i, p := range parts {
		evals[i], orders[i] = p.eval, orderOf(kind, p.kind)
		if i > 0 {
			constants = constants && p.constant && p.kind == kind
			set[p.value.Canonical()] = struct{}{}
		}
	}
	if constants {
		return func(f *Frame) (row.Value, error) {
			v, err := evals[0](f)
			_, in := set[v.Canonical()]
			return row.BoolValue(in), err
		}
	}
	return func(f *Frame) (row.Value, error) {
		v, err := evals[0](f)
		if err != nil {
			return v, err
		}
		var unknown error
		for i, eval := range evals[1:] {
			other, err := eval(f)
			if isUnknown(err) && safe {
				unknown = err
				continue
			}
			if err != nil {
				return other, err
			}
			if orders[i+1](v, other) == 0 {
				return row.BoolValue(true), nil
			}
		}
		return row.BoolValue(false), unknown
	}
}

func (c *checker) inRange(span *ast.BinaryNode, left *typed, known facts) (*typed, error) {
	from, err := c.checkValue(span.Left, known)
	if err != nil {
		return nil, err
	}
	to, err := c.checkValue(span.Right, known)
	if err != nil {
		return nil, err
	}
	for _, t := range []*typed{left, from, to} {
		if t.kind != row.Int {
			return nil, errorf(t.at, "in from..to needs ints, not %s", article(t.kind))
		}
	}
	t := &typed{kind: row.Bool}
	t.eval = func(f *Frame) (row.Value, error) {
		v, err := left.eval(f)
		if err != nil {
			return v, err
		}
		low, err := from.eval(f)
		if err != nil {
			return low, err
		}
		high, err := to.eval(f)
		return row.BoolValue(low.Int() <= v.Int() && v.Int() <= high.Int()), err
	}
	return t, fold(t, left, from, to)
}

func has(list, of *typed) (*typed, error) {
	elem, _ := list.kind.Elem()
	if err := comparable("in", of.at, &typed{kind: elem, at: list.at}, of); err != nil {
		return nil, err
	}
	of, err := promote(of, elem)
	if err != nil {
		return nil, err
	}
	order := orderOf(elem, of.kind)
	t := &typed{kind: row.Bool}
	t.eval = func(f *Frame) (row.Value, error) {
		v, err := list.eval(f)
		if err != nil {
			return v, err
		}
		wanted, err := of.eval(f)
		if err != nil {
			return wanted, err
		}
		return row.BoolValue(slices.ContainsFunc(v.Elements(), func(e row.Value) bool { return !e.IsNull() && order(e, wanted) == 0 })), nil
	}
	return t, fold(t, list, of)
}
