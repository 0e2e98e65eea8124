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
		{"div", "div(a, b): the integer quotient of two ints, always exact; a / b is the nearest float, and divide is for decimals", 2, 2, func(c *call) (*typed, error) {
			return c.apply2(row.Int, onInts(divInt)), c.wantAll(row.Int, row.Int)
		}},
		{"divide", "divide(a, b, scale) or divide(a, b, scale, mode): the decimal quotient, with scale digits after the point, rounded like round", 3, 4, divide},
		{"round", "round(x), round(x, places) or round(x, places, mode): half away from zero, or by mode: " + roundings(), 1, 3, round},
		{"floor", "floor(x)", 1, 1, func(c *call) (*typed, error) { return wholeNumber(c, math.Floor, row.RoundFloor) }},
		{"ceil", "ceil(x)", 1, 1, func(c *call) (*typed, error) { return wholeNumber(c, math.Ceil, row.RoundCeiling) }},
		{"min", "min(a, b, ...): ints and floats, or ints and decimals, are compared by value, and the result is then not an int; min(list): the least element, nil for an empty list", 1, manyArguments, func(c *call) (*typed, error) { return extreme(c, -1) }},
		{"max", "max(a, b, ...), max(list): like min", 1, manyArguments, func(c *call) (*typed, error) { return extreme(c, 1) }},
	}
}

func absolute(c *call) (*typed, error) {
	if err := c.want(0, row.Int, row.Float, row.DecimalKind); err != nil {
		return nil, err
	}
	if c.is(0, row.DecimalKind) {
		return c.apply1(row.DecimalKind, func(a row.Value) (row.Value, error) { return row.DecimalValue(a.Decimal().Abs()), nil }), nil
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

func wholeNumber(c *call, rule func(float64) float64, mode row.Rounding) (*typed, error) {
	if err := c.want(0, row.Int, row.Float, row.DecimalKind); err != nil || c.is(0, row.Int) {
		return c.args[0], err
	}
	if c.is(0, row.DecimalKind) {
		return c.apply1(row.DecimalKind, func(a row.Value) (row.Value, error) { return decimalResult(a.Decimal().Round(0, mode)) }), nil
	}
	return c.apply1(row.Float, func(a row.Value) (row.Value, error) { return row.FloatValue(rule(a.Float())), nil }), nil
}

func round(c *call) (*typed, error) {
	if err := c.want(0, row.Int, row.Float, row.DecimalKind); err != nil {
		return nil, err
	}
	if len(c.args) > 1 {
		if err := c.want(1, row.Int); err != nil {
			return nil, err
		}
	}
	mode, err := c.rounding(2)
	if err != nil {
		return nil, err
	}
	switch {
	case c.is(0, row.DecimalKind):
		return roundDecimal(c, mode), nil
	case c.is(0, row.Float) && len(c.args) == 3:
		return roundFloatBy(c, mode), nil
	case c.is(0, row.Int) && len(c.args) == 1:
		return c.args[0], nil
	case c.is(0, row.Int): // whole already, by every mode
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
		return fmt.Errorf("round to %d places: 0 to %d are allowed", places, maxPlaces)
	}
	return nil
}

// roundFloat rounds the shortest decimal text half away from zero: round(1.005, 2) is 1.01.
func roundFloat(x float64, places int) float64 {
	if math.Abs(x) >= 1<<52 {
		return x // no digits after the point
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

func extreme(c *call, sign int) (*typed, error) {
	kind := c.args[0].kind
	switch {
	case len(c.args) == 1 && kind.IsList():
		return extremeOf(c, sign)
	case len(c.args) == 1:
		return nil, errorf(c.args[0].at, "%s needs a list here, or more values, not %s", c.name, article(kind))
	}
	if err := ordered(c.name, c.args[0].at, kind); err != nil {
		return nil, err
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
		order = compareNumbers
		for _, arg := range c.args {
			if arg.kind != row.Int && (kind == row.Int || arg.kind == row.DecimalKind) {
				kind = arg.kind
			}
		}
		for i := range c.args { // literals of floats next to decimals
			if kind == row.DecimalKind && c.args[i].kind == row.Float {
				c.args[i] = toExact(c.args[i])
			}
		}
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
		if mixed && best.Kind() == row.Int { // only the result is made a float or decimal
			if kind == row.DecimalKind {
				return row.DecimalValue(exact(best)), nil
			}
			return asFloat(best, at)
		}
		return best, nil
	}}, nil
}
