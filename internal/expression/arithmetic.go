package expression

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func arithmetic(op string, at int, left, right *typed) (*typed, error) {
	left, right, err := exactBoth(left, right)
	if err != nil {
		return nil, err
	}
	kind, calc := operation(op, left.kind, right.kind)
	if calc == nil {
		return nil, errorf(at, "%s is not defined for %s and %s%s", op, article(left.kind), article(right.kind), operandHelp(op, left, right))
	}
	a, b := left, right
	if isNumber(left.kind) && isNumber(right.kind) && !(op == "/" && left.kind == row.Int && right.kind == row.Int) {
		if a, b, err = promoteBoth(left, right, kind); err != nil {
			return nil, err
		}
	}
	t := &typed{kind: kind}
	t.eval = func(f *Frame) (row.Value, error) {
		x, err := a.eval(f)
		if err != nil {
			return x, err
		}
		y, err := b.eval(f)
		if err != nil {
			return y, err
		}
		v, err := calc(x, y)
		if err != nil {
			return row.Value{}, failf(at, "%v", err)
		}
		return v, nil
	}
	return t, fold(t, left, right)
}

func operandHelp(op string, left, right *typed) string {
	switch {
	case !isNumber(left.kind) || !isNumber(right.kind):
	case op == "/":
		return " (a quotient may have infinitely many digits: write divide(a, b, scale), or float(a) / float(b))"
	case op == "**" || op == "^":
		return " (write float(a) " + op + " float(b))"
	}
	if op == "+" && (left.kind == row.String || right.kind == row.String) {
		return " (convert it to a text: string(x))"
	}
	return ""
}

type calculation func(x, y row.Value) (row.Value, error)

func operation(op string, left, right row.Kind) (row.Kind, calculation) {
	switch {
	case left == row.String && right == row.String && op == "+":
		return row.String, func(x, y row.Value) (row.Value, error) { return row.StringValue(x.Str() + y.Str()), nil }
	case left == row.DecimalKind && isNumber(right) || isNumber(left) && right == row.DecimalKind:
		return row.DecimalKind, onDecimals(op)
	case isNumber(left) && isNumber(right):
		if left == row.Int && right == row.Int {
			switch op {
			case "/":
				return row.Float, quotient
			case "**", "^":
			default:
				return row.Int, onInts(intOperation(op))
			}
		}
		calc := floatOperation(op)
		if calc == nil {
			return row.Null, nil
		}
		return row.Float, onFloats(calc)
	}
	return timeOperation(op, left, right)
}

func onInts(calc func(x, y int64) (int64, error)) calculation {
	return func(x, y row.Value) (row.Value, error) {
		n, err := calc(x.Int(), y.Int())
		return row.IntValue(n), err
	}
}

func onFloats(calc func(x, y float64) (float64, error)) calculation {
	return func(x, y row.Value) (row.Value, error) {
		r, err := calc(x.Float(), y.Float())
		if err != nil {
			return row.Value{}, err
		}
		return finite(r)
	}
}

func finite(r float64) (row.Value, error) {
	if math.IsNaN(r) || math.IsInf(r, 0) {
		return row.Value{}, fmt.Errorf("the result is not a finite number")
	}
	return row.FloatValue(r), nil
}

func intOperation(op string) func(x, y int64) (int64, error) {
	switch op {
	case "+":
		return addInt
	case "-":
		return subInt
	case "*":
		return mulInt
	default:
		return remInt
	}
}

func floatOperation(op string) func(x, y float64) (float64, error) {
	switch op {
	case "+":
		return func(x, y float64) (float64, error) { return x + y, nil }
	case "-":
		return func(x, y float64) (float64, error) { return x - y, nil }
	case "*":
		return func(x, y float64) (float64, error) { return x * y, nil }
	case "/":
		return func(x, y float64) (float64, error) {
			if y == 0 {
				return 0, errDivision
			}
			return x / y, nil
		}
	case "**", "^":
		return func(x, y float64) (float64, error) { return math.Pow(x, y), nil }
	default:
		return nil // % is for ints
	}
}

var errDivision = fmt.Errorf("division by zero")

func overflow(x int64, op string, y int64) error {
	return fmt.Errorf("%d %s %d does not fit an int", x, op, y)
}

func addInt(x, y int64) (int64, error) {
	if sum := x + y; (sum > x) == (y > 0) {
		return sum, nil
	}
	return 0, overflow(x, "+", y)
}

func subInt(x, y int64) (int64, error) {
	if diff := x - y; (diff < x) == (y > 0) {
		return diff, nil
	}
	return 0, overflow(x, "-", y)
}

func mulInt(x, y int64) (int64, error) {
	high, low := bits.Mul64(magnitude(x), magnitude(y))
	negative := (x < 0) != (y < 0)
	switch {
	case high == 0 && low <= math.MaxInt64:
		return x * y, nil
	case high == 0 && negative && low == 1<<63:
		return math.MinInt64, nil
	}
	return 0, overflow(x, "*", y)
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

func remInt(x, y int64) (int64, error) {
	switch y {
	case 0:
		return 0, errDivision
	case -1: // the machine traps at MinInt64 % -1
		return 0, nil
	}
	return x % y, nil
}

func divInt(x, y int64) (int64, error) {
	switch {
	case y == 0:
		return 0, errDivision
	case x == math.MinInt64 && y == -1:
		return 0, overflow(x, "/", y)
	}
	return x / y, nil
}

func timeOperation(op string, left, right row.Kind) (row.Kind, calculation) {
	plus, minus := op == "+", op == "-"
	switch {
	case plus && left == row.DateKind && right == row.Int:
		return row.DateKind, func(x, y row.Value) (row.Value, error) { return addDays(x.Date(), y.Int()) }
	case minus && left == row.DateKind && right == row.Int:
		return row.DateKind, func(x, y row.Value) (row.Value, error) {
			n, err := subInt(0, y.Int())
			if err != nil {
				return row.Value{}, err
			}
			return addDays(x.Date(), n)
		}
	case minus && left == row.DateKind && right == row.DateKind:
		return row.Int, func(x, y row.Value) (row.Value, error) {
			return row.IntValue(int64(x.Date()) - int64(y.Date())), nil
		}
	case plus && left == row.Timestamp && right == kindDuration:
		return row.Timestamp, func(x, y row.Value) (row.Value, error) { return inYears(x.Time().Add(time.Duration(y.Int()))) }
	case minus && left == row.Timestamp && right == kindDuration:
		return row.Timestamp, func(x, y row.Value) (row.Value, error) {
			n, err := subInt(0, y.Int())
			if err != nil {
				return row.Value{}, err
			}
			return inYears(x.Time().Add(time.Duration(n)))
		}
	case minus && left == row.Timestamp && right == row.Timestamp:
		return kindDuration, func(x, y row.Value) (row.Value, error) {
			d := x.Time().Sub(y.Time())
			if d == math.MaxInt64 || d == math.MinInt64 {
				return row.Value{}, fmt.Errorf("the duration from %s to %s is longer than 292 years", y, x)
			}
			return row.IntValue(int64(d)), nil
		}
	case (plus || minus) && left == kindDuration && right == kindDuration:
		return kindDuration, onInts(intOperation(op))
	}
	return row.Null, nil
}

func addDays(d row.Date, days int64) (row.Value, error) {
	first, last := row.NewDate(1, 1, 1), row.NewDate(9999, 12, 31)
	n, err := addInt(int64(d), days)
	if err != nil || n < int64(first) || n > int64(last) {
		return row.Value{}, fmt.Errorf("%s plus %d days is outside the years 1 to 9999", d, days)
	}
	return row.DateValue(row.Date(n)), nil
}

func inYears(t time.Time) (row.Value, error) {
	if y := t.UTC().Year(); y < 1 || y > 9999 {
		return row.Value{}, fmt.Errorf("the timestamp is outside the years 1 to 9999")
	}
	return row.TimestampValue(t), nil
}
