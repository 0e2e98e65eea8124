package expression

import (
	"errors"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func listFunctions() []function {
	return []function{
		{"split", "split(text, separator): the list of its parts; an empty list for an empty text", 2, 2, split},
		{"sort", "sort(list): its elements in ascending order, nil last", 1, 1, sortList},
		{"distinct", "distinct(list): each of its elements once, at its first position", 1, 1, distinct},
		{"sum", "sum(list): the sum of the numbers, ignoring nil; 0 for an empty list", 1, 1, sum},
	}
}

func split(c *call) (*typed, error) {
	if err := c.wantAll(row.String, row.String); err != nil {
		return nil, err
	}
	return c.apply2(row.ListOf(row.String), func(a, separator row.Value) (row.Value, error) {
		if separator.Str() == "" {
			return row.Value{}, errors.New("the separator is empty")
		}
		parts := strings.Split(a.Str(), separator.Str())
		if a.Str() == "" {
			parts = []string{}
		}
		return row.ValueOf(parts)
	}), nil
}

func (c *call) wantList() (row.Kind, error) {
	elem, ok := c.args[0].kind.Elem()
	if !ok {
		return elem, errorf(c.args[0].at, "%s needs a list here, not %s: %s", c.name, article(c.args[0].kind), c.usage)
	}
	return elem, nil
}

func notNull(list row.Value) (elements []row.Value, nulls int) {
	all := list.Elements()
	elements = slices.DeleteFunc(all, row.Value.IsNull)
	return elements, len(all) - len(elements)
}

func sortList(c *call) (*typed, error) {
	elem, err := c.wantList()
	if err == nil {
		err = ordered(c.name, c.args[0].at, elem)
	}
	if err != nil {
		return nil, err
	}
	return c.apply1(row.ListOf(elem), func(a row.Value) (row.Value, error) {
		elements, nulls := notNull(a)
		slices.SortStableFunc(elements, orderOf(elem, elem))
		return row.ListValue(elem, append(elements, make([]row.Value, nulls)...))
	}), nil
}

func distinct(c *call) (*typed, error) {
	elem, err := c.wantList()
	if err != nil {
		return nil, err
	}
	return c.apply1(row.ListOf(elem), func(a row.Value) (row.Value, error) {
		seen := map[row.Value]bool{}
		return row.ListValue(elem, slices.DeleteFunc(a.Elements(), func(e row.Value) bool {
			key := e.Canonical()
			twice := seen[key]
			seen[key] = true
			return twice
		}))
	}), nil
}

func sum(c *call) (*typed, error) {
	elem, err := c.wantList()
	if err == nil && !isNumber(elem) {
		err = errorf(c.args[0].at, "sum needs a list of numbers, not %s", article(c.args[0].kind))
	}
	if err != nil {
		return nil, err
	}
	return c.apply1(elem, func(a row.Value) (row.Value, error) {
		elements, _ := notNull(a)
		return sumOf(elem, elements)
	}), nil
}

func sumOf(kind row.Kind, elements []row.Value) (row.Value, error) {
	var whole int64
	var exact row.Decimal
	var float float64
	var err error
	for _, e := range elements {
		switch kind {
		case row.Int:
			whole, err = addInt(whole, e.Int())
		case row.DecimalKind:
			exact, err = exact.Add(e.Decimal())
		default:
			float += e.Float()
		}
		if err != nil {
			return row.Value{}, err
		}
	}
	switch kind {
	case row.Int:
		return row.IntValue(whole), nil
	case row.DecimalKind:
		return row.DecimalValue(exact), nil
	default:
		return finite(float)
	}
}

func extremeOf(c *call, sign int) (*typed, error) {
	elem, _ := c.args[0].kind.Elem()
	if err := ordered(c.name, c.args[0].at, elem); err != nil {
		return nil, err
	}
	order := orderOf(elem, elem)
	t := c.apply1(elem, func(a row.Value) (row.Value, error) {
		elements, _ := notNull(a)
		if len(elements) == 0 {
			return row.Value{}, nil
		}
		return slices.MaxFunc(elements, func(a, b row.Value) int { return order(a, b) * sign }), nil
	})
	t.nullable = true
	return t, nil
}
