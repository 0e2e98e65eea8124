package expression

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

var floatText = regexp.MustCompile(`^[0-9_]*\.?[0-9_]*([eE][-+]?[0-9]+)?`)

// floatLiteral keeps the digits of a literal: next to a decimal it is a decimal.
func (c *checker) floatLiteral(n *ast.FloatNode) *typed {
	t := literal(row.Float, row.FloatValue(n.Value))
	digits := strings.ReplaceAll(floatText.FindString(c.text[c.at(n):]), "_", "")
	if d, err := row.ParseDecimal(digits); err == nil {
		if x, ok := d.Float(); ok && x == n.Value {
			t.digits = digits
		}
	}
	return t
}

func exact(v row.Value) row.Decimal {
	if v.Kind() == row.Int {
		return row.DecimalOf(v.Int())
	}
	return v.Decimal()
}

func decimalResult(d row.Decimal, err error) (row.Value, error) {
	if err != nil {
		return row.Value{}, err
	}
	return row.DecimalValue(d), nil
}

func toExact(t *typed) *typed {
	p := *t
	p.kind, p.digits = row.DecimalKind, ""
	if t.kind == row.Float {
		d, err := row.ParseDecimal(t.digits)
		p.value = row.DecimalValue(d)
		p.eval = func(*Frame) (row.Value, error) { return p.value, err }
		return &p
	}
	if t.constant && !t.value.IsNull() {
		p.value = row.DecimalValue(exact(t.value))
	}
	p.eval = func(f *Frame) (row.Value, error) {
		v, err := t.eval(f)
		if err != nil || v.IsNull() {
			return v, err
		}
		return row.DecimalValue(exact(v)), nil
	}
	return &p
}

// exactBoth makes a float literal next to a decimal a decimal, and refuses any other float.
func exactBoth(left, right *typed) (a, b *typed, err error) {
	switch {
	case left.empty:
		left, err = promote(left, right.kind)
		return left, right, err
	case right.empty:
		right, err = promote(right, left.kind)
		return left, right, err
	case !isPair(left, right, row.DecimalKind, row.Float):
		return left, right, nil
	}
	if _, err := unifyNumbers(left, right); err != nil {
		return nil, nil, err
	}
	if left.kind == row.Float {
		return toExact(left), right, nil
	}
	return left, toExact(right), nil
}

func unifyNumbers(a, b *typed) (row.Kind, error) {
	if a.kind != row.DecimalKind && b.kind != row.DecimalKind {
		return row.Float, nil
	}
	for _, t := range []*typed{a, b} {
		if t.kind == row.Float && t.digits == "" {
			return 0, &Error{
				Offset: t.at, Msg: "a decimal and a float cannot be combined: a decimal is exact, a float is not",
				Hint: "write decimal(x) for the float, or float(x) for the decimal",
			}
		}
	}
	return row.DecimalKind, nil
}

func onDecimals(op string) calculation {
	var calc func(x, y row.Decimal) (row.Decimal, error)
	switch op {
	case "+":
		calc = row.Decimal.Add
	case "-":
		calc = row.Decimal.Sub
	case "*":
		calc = row.Decimal.Mul
	default:
		return nil
	}
	return func(x, y row.Value) (row.Value, error) { return decimalResult(calc(exact(x), exact(y))) }
}

func roundings() string { return "'" + strings.Join(row.RoundingNames(), "', '") + "'" }

func (c *call) rounding(i int) (row.Rounding, error) {
	if i >= len(c.args) {
		return row.RoundHalfUp, nil
	}
	if err := c.want(i, row.String); err != nil {
		return 0, err
	}
	if !c.args[i].literal {
		return 0, errorf(c.args[i].at, "the mode of %s is a text such as 'half_even' (allowed: %s)", c.name, roundings())
	}
	name := c.args[i].value.Str()
	mode, ok := row.RoundingByName(strings.ToLower(name))
	if !ok {
		return 0, errorf(c.args[i].at, "%s has no mode %s%s (allowed: %s)", c.name, quote(name), nearest.Hint(name, row.RoundingNames()), roundings())
	}
	return mode, nil
}

func divide(c *call) (*typed, error) {
	for i := range 2 {
		if c.args[i].digits != "" {
			c.args[i] = toExact(c.args[i])
		}
		if err := c.want(i, row.Int, row.DecimalKind); err != nil {
			return nil, err
		}
	}
	if err := c.want(2, row.Int); err != nil {
		return nil, err
	}
	mode, err := c.rounding(3)
	if err != nil {
		return nil, err
	}
	return c.apply3(row.DecimalKind, func(a, b, scale row.Value) (row.Value, error) {
		if n := scale.Int(); n < 0 || n > row.MaxScale {
			return row.Value{}, fmt.Errorf("%d digits after the point: 0 to %d are allowed", n, row.MaxScale)
		}
		return decimalResult(exact(a).Quo(exact(b), int(scale.Int()), mode))
	}), nil
}

func roundDecimal(c *call, mode row.Rounding) *typed {
	if len(c.args) == 1 {
		return c.apply1(row.DecimalKind, func(a row.Value) (row.Value, error) { return decimalResult(a.Decimal().Round(0, mode)) })
	}
	return c.apply2(row.DecimalKind, func(a, places row.Value) (row.Value, error) {
		if n := places.Int(); n < 0 || n > row.MaxScale {
			return row.Value{}, fmt.Errorf("round to %d places: 0 to %d are allowed", n, row.MaxScale)
		}
		return decimalResult(a.Decimal().Round(int(places.Int()), mode))
	})
}

func roundFloatBy(c *call, mode row.Rounding) *typed {
	return c.apply2(row.Float, func(a, places row.Value) (row.Value, error) {
		if err := roundPlaces(places.Int()); err != nil {
			return row.Value{}, err
		}
		d, err := row.DecimalOfFloat(a.Float())
		if err == nil {
			d, err = d.Round(int(places.Int()), mode)
		}
		if err != nil {
			return row.Value{}, err
		}
		x, _ := d.Float()
		return finite(x)
	})
}

func toDecimal(c *call) (*typed, error) {
	if c.args[0].digits != "" {
		return toExact(c.args[0]), nil
	}
	if err := c.want(0, row.String, row.Int, row.Float, row.DecimalKind); err != nil || c.is(0, row.DecimalKind) {
		return c.args[0], err
	}
	return c.apply1(row.DecimalKind, func(a row.Value) (row.Value, error) {
		switch a.Kind() {
		case row.Int:
			return row.DecimalValue(exact(a)), nil
		case row.Float:
			return decimalResult(row.DecimalOfFloat(a.Float()))
		default:
			d, err := row.ParseDecimal(strings.TrimSpace(a.Str()))
			if err != nil {
				return row.Value{}, fmt.Errorf("%s is not a decimal", quote(a.Str()))
			}
			return row.DecimalValue(d), nil
		}
	}), nil
}

func wholeOf(a row.Value) (row.Value, error) {
	i, fits, _ := a.Decimal().Int()
	if !fits {
		return row.Value{}, fmt.Errorf("%s does not fit an int", a)
	}
	return row.IntValue(i), nil
}

func nearestFloat(a row.Value) (row.Value, error) {
	x, ok := a.Decimal().Float()
	if !ok {
		return row.Value{}, fmt.Errorf("%s is beyond the largest float", a)
	}
	return row.FloatValue(x), nil
}
