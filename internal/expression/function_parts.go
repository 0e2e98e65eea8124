package expression

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const maxPadded = 1 << 16

func partFunctions() []function {
	return []function{
		{"split_part", "split_part(text, separator, n): part number n between separators, from 0, or from the end with -1; nil if there is none", 3, 3, splitPart},
		{"pad_left", "pad_left(text, width) or pad_left(text, width, '0'): padded on the left to that many characters", 2, 3, func(c *call) (*typed, error) { return pad(c, true) }},
		{"pad_right", "pad_right(text, width) or pad_right(text, width, '.')", 2, 3, func(c *call) (*typed, error) { return pad(c, false) }},
	}
}

func splitPart(c *call) (*typed, error) {
	if err := c.wantAll(row.String, row.String, row.Int); err != nil {
		return nil, err
	}
	t := c.apply3(row.String, func(a, separator, n row.Value) (row.Value, error) {
		if separator.Str() == "" {
			return row.Value{}, fmt.Errorf("the separator is empty (substr(text, n, 1) is one character)")
		}
		text, ok := partOf(a.Str(), separator.Str(), n.Int())
		if !ok {
			return row.Value{}, nil
		}
		return row.StringValue(text), nil
	})
	t.nullable = true
	return t, nil
}

func partOf(text, separator string, n int64) (string, bool) {
	for ; n < -1; n++ {
		i := strings.LastIndex(text, separator)
		if i < 0 {
			return "", false
		}
		text = text[:i]
	}
	if n == -1 {
		return text[strings.LastIndex(text, separator)+lastWidth(text, separator):], true
	}
	for ; n > 0; n-- {
		i := strings.Index(text, separator)
		if i < 0 {
			return "", false
		}
		text = text[i+len(separator):]
	}
	text, _, _ = strings.Cut(text, separator)
	return text, true
}

func lastWidth(text, separator string) int {
	if strings.Contains(text, separator) {
		return len(separator)
	}
	return 1
}

func pad(c *call, left bool) (*typed, error) {
	if err := c.wantAll(row.String, row.Int, row.String); err != nil {
		return nil, err
	}
	fill := func(text, width row.Value, filler string) (row.Value, error) {
		if width.Int() < 0 || width.Int() > maxPadded {
			return row.Value{}, fmt.Errorf("%s to %d characters: 0 to %d are allowed", c.name, width.Int(), maxPadded)
		}
		if utf8.RuneCountInString(filler) != 1 {
			return row.Value{}, fmt.Errorf("%s pads with one character, not with %s", c.name, quote(filler))
		}
		more := int(width.Int()) - utf8.RuneCountInString(text.Str())
		if more <= 0 {
			return text, nil
		}
		if left {
			return row.StringValue(strings.Repeat(filler, more) + text.Str()), nil
		}
		return row.StringValue(text.Str() + strings.Repeat(filler, more)), nil
	}
	if len(c.args) == 2 {
		return c.apply2(row.String, func(text, width row.Value) (row.Value, error) { return fill(text, width, " ") }), nil
	}
	return c.apply3(row.String, func(text, width, filler row.Value) (row.Value, error) { return fill(text, width, filler.Str()) }), nil
}

const (
	tryUsage  = "try(x, fallback): x, or fallback if evaluating x fails"
	joinUsage = "join(separator, a, b, ...): the texts and the elements of lists, joined by the separator; nil is left out"
)

func (c *checker) special(name string, at int, nodes []ast.Node, known facts) (*typed, error) {
	switch name {
	case "try":
		return c.callTry(at, nodes, known)
	case "join":
		return c.callJoin(at, nodes, known)
	case "business_day", "is_business_day":
		return c.callBusiness(name, at, nodes, known)
	}
	return nil, nil
}

func (c *checker) callTry(at int, nodes []ast.Node, known facts) (*typed, error) {
	if len(nodes) != 2 {
		return nil, errorf(at, "wrong arguments of try: %s", tryUsage)
	}
	first, err := c.check(nodes[0], known)
	if err != nil {
		return nil, err
	}
	second, err := c.check(nodes[1], known)
	if err != nil {
		return nil, err
	}
	kind, err := unify(first, second)
	if err != nil {
		return nil, err
	}
	a, b, err := promoteBoth(first, second, kind)
	if err != nil {
		return nil, err
	}
	t := &typed{kind: kind, nullable: first.nullable || second.nullable}
	t.eval = func(f *Frame) (row.Value, error) {
		v, err := a.eval(f)
		if err == nil || isUnknown(err) {
			return v, err
		}
		return b.eval(f)
	}
	return t, fold(t, first, second)
}

func (c *checker) callJoin(at int, nodes []ast.Node, known facts) (*typed, error) {
	if len(nodes) < 2 || len(nodes) > manyArguments {
		return nil, errorf(at, "wrong arguments of join: %s", joinUsage)
	}
	args := make([]*typed, len(nodes))
	for i, n := range nodes {
		arg, err := c.check(n, known)
		if err == nil && i == 0 {
			err = arg.required()
		}
		if err != nil {
			return nil, err
		}
		if arg.kind != row.String && (arg.kind != row.Null && !arg.kind.IsList() || i == 0) {
			return nil, errorf(arg.at, "join needs texts, not %s: write string(x)", article(arg.kind))
		}
		args[i] = arg
	}
	t := &typed{kind: row.String}
	t.eval = func(f *Frame) (row.Value, error) {
		separator, err := args[0].eval(f)
		if err != nil {
			return separator, err
		}
		var joined strings.Builder
		first := true
		for _, arg := range args[1:] {
			v, err := arg.eval(f)
			if err != nil {
				return v, err
			}
			texts := []row.Value{v}
			if v.Kind().IsList() {
				texts = v.Elements()
			}
			for _, text := range texts {
				if text.IsNull() {
					continue
				}
				if !first {
					joined.WriteString(separator.Str())
				}
				first = false
				joined.WriteString(text.String())
			}
		}
		return row.StringValue(joined.String()), nil
	}
	return t, fold(t, args...)
}
