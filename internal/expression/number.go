package expression

import (
	"cmp"
	"fmt"
	"math/big"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func isNumber(k row.Kind) bool { return k == row.Int || k == row.Float || k == row.DecimalKind }

// An int without an exact float is an error: float(x) rounds it.
func promote(t *typed, kind row.Kind) (*typed, error) {
	switch {
	case t.empty && kind.IsList():
		p := emptyList(kind)
		p.at = t.at
		return p, nil
	case kind == row.DecimalKind && t.kind != kind && t.kind != row.Null:
		return toExact(t), nil
	case kind != row.Float || t.kind != row.Int:
		return t, nil
	}
	p := *t
	p.kind = row.Float
	p.eval = func(f *Frame) (row.Value, error) {
		v, err := t.eval(f)
		if err != nil || v.IsNull() {
			return v, err
		}
		return asFloat(v, t.at)
	}
	if t.constant && !t.value.IsNull() {
		x, exact := row.FloatOf(t.value.Int())
		switch {
		case exact:
			p.value = row.FloatValue(x)
			p.eval = constantOf(p.value)
		case t.literal:
			return nil, errorf(t.at, "%s", notExact(t.value.Int()))
		default:
			p.constant = false
		}
	}
	return &p, nil
}

func asFloat(v row.Value, at int) (row.Value, error) {
	x, exact := row.FloatOf(v.Int())
	if !exact {
		return row.Value{}, failf(at, "%s", notExact(v.Int()))
	}
	return row.FloatValue(x), nil
}

func notExact(i int64) string {
	return fmt.Sprintf("%d does not fit a float, which has 53 bits: write float(...) to round it", i)
}

func promoteBoth(left, right *typed, kind row.Kind) (a, b *typed, err error) {
	if a, err = promote(left, kind); err == nil {
		b, err = promote(right, kind)
	}
	return a, b, err
}

// compareNumbers compares by value: 9007199254740993 is greater than 9007199254740992.0, although
// the nearest float is not.
func compareNumbers(a, b row.Value) int {
	switch {
	case a.Kind() == row.Int && b.Kind() == row.Int:
		return cmp.Compare(a.Int(), b.Int())
	case a.Kind() == row.DecimalKind || b.Kind() == row.DecimalKind:
		return exact(a).Cmp(exact(b))
	case a.Kind() == row.Int:
		return row.CompareIntFloat(a.Int(), b.Float())
	case b.Kind() == row.Int:
		return -row.CompareIntFloat(b.Int(), a.Float())
	}
	return cmp.Compare(a.Float(), b.Float())
}

// quotient is the float nearest to the quotient of two ints; a whole one without an exact float is
// an error.
func quotient(x, y row.Value) (row.Value, error) {
	a, b := x.Int(), y.Int()
	if b == 0 {
		return row.Value{}, errDivision
	}
	p, pExact := row.FloatOf(a)
	q, qExact := row.FloatOf(b)
	if pExact && qExact {
		return row.FloatValue(p / q), nil
	}
	if b != -1 && a%b != 0 {
		near, _ := new(big.Rat).SetFrac(big.NewInt(a), big.NewInt(b)).Float64()
		return row.FloatValue(near), nil
	}
	whole, err := divInt(a, b)
	if err != nil {
		return row.Value{}, err
	}
	if exact, ok := row.FloatOf(whole); ok {
		return row.FloatValue(exact), nil
	}
	return row.Value{}, fmt.Errorf("%d / %d does not fit a float, which has 53 bits: write div(a, b) for an int, or float(a) / b to round it", a, b)
}
