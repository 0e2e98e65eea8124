package expression

import (
	"fmt"

	"github.com/expr-lang/expr/ast"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func emptyList(kind row.Kind) *typed {
	elem, _ := kind.Elem()
	v, err := row.ListValue(elem, nil)
	if err != nil { // impossible: there are no elements
		panic(err)
	}
	t := literal(kind, v)
	t.empty = true
	return t
}

func (c *checker) list(n *ast.ArrayNode, known facts) (*typed, error) {
	if len(n.Nodes) == 0 {
		return emptyList(row.ListOf(row.String)), nil
	}
	parts := make([]*typed, len(n.Nodes))
	for i, node := range n.Nodes {
		t, err := c.checkValue(node, known)
		if err != nil {
			return nil, err
		}
		parts[i] = t
	}
	kind := parts[0].kind
	for _, t := range parts[1:] {
		first := *parts[0]
		first.kind = kind
		var err error
		if kind, err = unify(&first, t); err != nil {
			return nil, err
		}
	}
	if !row.ListOf(kind).IsList() || kind.IsList() {
		return nil, errorf(c.at(n), "there are no lists of %s", kindName(kind))
	}
	for i := range parts {
		var err error
		if parts[i], err = promote(parts[i], kind); err != nil {
			return nil, err
		}
	}
	at := c.at(n)
	t := &typed{kind: row.ListOf(kind)}
	t.eval = func(f *Frame) (row.Value, error) {
		elements := make([]row.Value, len(parts))
		for i, p := range parts {
			var err error
			if elements[i], err = p.eval(f); err != nil {
				return row.Value{}, err
			}
		}
		v, err := row.ListValue(kind, elements)
		if err != nil {
			return v, failf(at, "%v", err)
		}
		return v, nil
	}
	return t, fold(t, parts...)
}

func (c *checker) element(n *ast.MemberNode, known facts) (*typed, error) {
	if _, isName := n.Property.(*ast.StringNode); isName {
		return nil, nil
	}
	list, err := c.checkValue(n.Node, known)
	if err != nil {
		return nil, err
	}
	index, err := c.checkValue(n.Property, known)
	switch {
	case err != nil:
		return nil, err
	case list.kind == row.JSONKind:
		return nil, &Error{Offset: c.at(n), Msg: "json has no elements here", Hint: "write json_get(x, '[0]')"}
	case !list.kind.IsList():
		return nil, &Error{Offset: c.at(n), Msg: article(list.kind) + " has no elements: only a list has", Hint: hintOfElement(list.kind)}
	case index.kind != row.Int:
		return nil, errorf(index.at, "an element's index is an int, not %s", article(index.kind))
	}
	elem, _ := list.kind.Elem()
	t := &typed{kind: elem, nullable: true}
	t.eval = func(f *Frame) (row.Value, error) {
		v, err := list.eval(f)
		if err != nil {
			return v, err
		}
		i, err := index.eval(f)
		if err != nil {
			return i, err
		}
		return v.Element(i.Int()), nil
	}
	if index.constant && index.literal && list.path != "" { // a name of its own, which may be tested
		t.path = fmt.Sprintf("%s[%d]", list.path, index.value.Int())
		t.fact = fmt.Sprintf("%s[%d]", list.fact, index.value.Int())
		t.nullable = !known[t.fact]
	}
	return t, fold(t, list, index)
}

func hintOfElement(kind row.Kind) string {
	if kind == row.String {
		return "write split_part(text, ';', 0) for a part, substr(text, 0, 1) for a character; or declare the field as a list of string"
	}
	return "a field is a list by its type, such as " + row.ListOf(row.Int).String()
}
