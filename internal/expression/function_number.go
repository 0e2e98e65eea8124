package expression

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const manyArguments = 64

func numberFunctions() []function {
	return []function{
		{"abs", "abs(x)", 1, 1, absolute},
		{"div", "div(a, b): the integer quotient of two ints, exact always; a / b is the nearest float", 2, 2, func(c *call) (*typed, error) {
			return c.apply2(row.Int, onInts(divInt)), c.wantAll(row.Int, row.Int)
		}},
		{"round", "round(x) or round(x, places), half away from zero", 1, 2, round},
		{"floor", "floor(x)", 1, 1, func(c *call) (*typed, error) { return wholeFloat(c, math.Floor) }},
		{"ceil", "ceil(x)", 1, 1, func(c *call) (*typed, error) { return wholeFloat(c, math.Ceil) }},
		{"min", "min(a, b, ...): ints and floats are compared by their values, and the result is a float then", 2, manyArguments, func(c *call) (*typed, error) { return extreme(c, -1) }},
		{"max", "max(a, b, ...): like min", 2, manyArguments, func(c *call) (*typed, error) { return extreme(c, 1) }},
	}
}

func absolute(c *call) (*typed, error) {
	if err := c.want(0, row.Int, row.Float); err != nil {
		return nil, err
	}
	if c.is(0, row.Float) {
		return c.apply1(row.Float, func(a row.Value) (row.Value, error) { return row.FloatValue(math.Abs(a.Float())), nil }), nil
	}
	return c.apply1(row.Int, func(a row.Value) (row.Value, error) {
		if a.Int() == math.MinInt64 {
			return row.Value{}, fmt.Errorf("abs(%d) does not fit an int", a.Int())
		}
		return row.IntValue(max(a.Int(), -a.Int())), nil
	}), nil
}

func wholeFloat(c *call, rule func(float64) float64) (*typed, error) {
	if err := c.want(0, row.Int, row.Float); err != nil || c.is(0, row.Int) {
		return c.args[0], err
	}
	return c.apply1(row.Float, func(a row.Value) (row.Value, error) { return row.FloatValue(rule(a.Float())), nil }), nil
}

// round keeps the kind of its argument.
func round(c *call) (*typed, error) {
	if err := c.want(0, row.Int, row.Float); err != nil {
		return nil, err
	}
	if len(c.args) == 2 {
		if err := c.want(1, row.Int); err != nil {
			return nil, err
		}
	}
	switch {
	case c.is(0, row.Int) && len(c.args) == 1:
		return c.args[0], nil
	case c.is(0, row.Int):
		return c.apply2(row.Int, func(a, places row.Value) (row.Value, error) { return a, roundPlaces(places.Int()) }), nil
	case len(c.args) == 1:
		return c.apply1(row.Float, func(a row.Value) (row.Value, error) { return row.FloatValue(math.Round(a.Float())), nil }), nil
	}
	return c.apply2(row.Float, func(a, places row.Value) (row.Value, error) {
		if err := roundPlaces(places.Int()); err != nil {
			return row.Value{}, err
		}
		return finite(roundFloat(a.Float(), int(places.Int())))
	}), nil
}

func roundPlaces(places int64) error {
	const maxPlaces = 15 // digits that a float64 holds
	if places < 0 || places > maxPlaces {
		return fmt.Errorf("round to %d places: from 0 to %d are possible", places, maxPlaces)
	}
	return nil
}

// roundFloat rounds half away from zero what the shortest decimal text of x
// says: round(1.005, 2) is 1.01, although the nearest float is below 1.005.
func roundFloat(x float64, places int) float64 {
	if math.Abs(x) >= 1<<52 {
		return x // no digits behind the point
	}
	var room [32]byte
	text := strconv.AppendFloat(room[:0], x, 'f', -1, 64)
	point := bytes.IndexByte(text, '.')
	if point < 0 || len(text)-point-1 <= places {
		return x
	}
	end := point + 1 + places
	up := text[end] >= '5'
	cut, err := strconv.ParseFloat(string(text[:end]), 64)
	if err != nil {
		return x
	}
	if up {
		cut += math.Copysign(math.Pow(10, -float64(places)), x)
	}
	clean, err := strconv.ParseFloat(strconv.FormatFloat(cut, 'f', places, 64), 64)
	if err != nil {
		return x
	}
	return clean
}

// extreme is min (sign -1) and max (sign 1) of values that can be compared.
func extreme(c *call, sign int) (*typed, error) {
	kind := c.args[0].kind
	if kind == row.Bool {
		return nil, errorf(c.args[0].at, "%s cannot compare bools", c.name)
	}
	mixed := false
	for _, arg := range c.args[1:] {
		if err := comparable(c.name, arg.at, c.args[0], arg); err != nil {
			return nil, err
		}
		mixed = mixed || arg.kind != kind
	}
	at, order := c.at, orderOf(kind, kind)
	if mixed {
		kind, order = row.Float, compareNumbers
	}
	evals := make([]evalFn, len(c.args))
	for i, arg := range c.args {
		evals[i] = arg.eval
	}
	return &typed{kind: kind, eval: func(f *Frame) (row.Value, error) {
		best, err := evals[0](f)
		if err != nil {
			return best, err
		}
		for _, eval := range evals[1:] {
			v, err := eval(f)
			if err != nil {
				return v, err
			}
			if order(v, best)*sign > 0 {
				best = v
			}
		}
		if mixed && best.Kind() == row.Int { // only the result is made a float
			return asFloat(best, at)
		}
		return best, nil
	}}, nil
}
