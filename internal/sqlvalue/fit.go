package sqlvalue

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Fit converts a driver's value to the field's; a misfit is an invalid item.
func Fit(f *row.Field, x any) (row.Value, error) {
	switch x := x.(type) {
	case nil:
		return f.Missing()
	case string:
		if f.Kind == row.String && f.Nulls == nil {
			return row.StringValue(x), nil
		}
		return f.Parse(x)
	}
	v, err := fit(f, x)
	switch {
	case err == nil:
		return f.Known(v)
	case f.Coerce == row.CoerceError && !f.Counts():
		return v, err
	}
	if from, unfit := row.ValueOf(x); unfit == nil {
		if _, blob := x.([]byte); !blob {
			return f.Parse(from.String())
		}
	}
	return f.Coerced("", err)
}

func fit(f *row.Field, x any) (row.Value, error) {
	switch x := x.(type) {
	case int64:
		return FitInt(f, x)
	case float64:
		return FitFloat(f, x)
	case bool:
		if f.Kind == row.Bool {
			return row.BoolValue(x), nil
		}
	case time.Time:
		return fitTime(f, x.UTC())
	case []byte:
		if f.Kind == row.BytesKind {
			return row.BytesValue(x), nil
		}
		return row.Value{}, Misfit(f, "a blob")
	case [16]byte:
		if f.Kind == row.UUIDKind {
			return row.UUIDValue(x), nil
		}
	}
	return row.Value{}, Misfit(f, fmt.Sprintf("%v", x))
}

// Scanned gives cells their columns' precision: PostgreSQL returns a real 0.1 as
// 0.10000000149011612 (rule D7). A float64 of SQLite is unchanged. Texts of MySQL are bytes before.
func Scanned(d tx.Dialect, types []*sql.ColumnType, cells []any) error {
	for i, t := range types {
		if d == tx.MySQL {
			var err error
			if cells[i], err = mysqlCell(t.DatabaseTypeName(), cells[i]); err != nil {
				return fmt.Errorf("column %s: %w", t.Name(), err)
			}
			continue
		}
		if x, ok := cells[i].(float64); ok && t.DatabaseTypeName() == "FLOAT4" && float64(float32(x)) == x {
			cells[i] = row.Real(float32(x))
		}
	}
	return nil
}

func mysqlCell(typ string, x any) (any, error) {
	switch x := x.(type) {
	case []byte:
		switch typ {
		case "BIT":
			n := uint64(0)
			for _, b := range x {
				n = n<<8 | uint64(b)
			}
			return mysqlCell("", n)
		case "BINARY", "VARBINARY", "BLOB", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB", "GEOMETRY":
			return x, nil
		}
		return string(x), nil
	case uint64:
		if x > math.MaxInt64 {
			return strconv.FormatUint(x, 10), nil
		}
		return int64(x), nil
	case float32:
		return row.Real(x), nil
	case time.Time:
		if x.IsZero() {
			return nil, errors.New("a zero date of MySQL: exclude such rows, or cast it to char")
		}
	}
	return x, nil
}

// FitInt returns an int as the field's value: a float if exact, a bool if 0 or 1.
func FitInt(f *row.Field, x int64) (row.Value, error) {
	switch f.Kind {
	case row.Int:
		return row.IntValue(x), nil
	case row.Float:
		if f, ok := row.FloatOf(x); ok {
			return row.FloatValue(f), nil
		}
	case row.DecimalKind:
		return f.FitDecimal(row.DecimalOf(x))
	case row.Bool:
		if x == 0 || x == 1 {
			return row.BoolValue(x == 1), nil
		}
	case row.JSONKind:
		return row.JSONValue(row.JSON(strconv.FormatInt(x, 10))), nil
	default:
	}
	return row.Value{}, Misfit(f, fmt.Sprintf("the integer %d", x))
}

// ExactDigits is the number of decimal digits that a float64 keeps.
const ExactDigits = 15

// FitFloat returns a float as the field's value: an int if exact, a decimal if not longer than
// exact.
func FitFloat(f *row.Field, x float64) (row.Value, error) {
	switch {
	case f.Kind == row.Float && x-x == 0:
		return row.FloatValue(x), nil
	case f.Kind == row.Int:
		if i, ok := row.IntOf(x); ok {
			return row.IntValue(i), nil
		}
	case f.Kind == row.DecimalKind:
		if d, err := row.DecimalOfFloat(x); err == nil && d.Reduce().Digits() <= ExactDigits {
			return f.FitDecimal(d)
		}
		return row.Value{}, Misfit(f, "the float "+row.FloatText(x)+", which has more digits than a float can store exactly,")
	case f.Kind == row.JSONKind && x-x == 0: // of a column of type json, in which SQLite turns numbers into floats
		return row.JSONValue(row.JSON(row.FloatText(x))), nil
	}
	return row.Value{}, Misfit(f, "the number "+row.FloatText(x))
}

func fitTime(f *row.Field, x time.Time) (row.Value, error) {
	v := row.TimestampValue(x)
	switch {
	case f.Kind == row.Timestamp:
	case f.Kind == row.DateKind && x.Equal(x.Truncate(24*time.Hour)):
		v = row.DateValue(row.DateOf(x))
	default:
		return row.Value{}, Misfit(f, "the time "+x.Format(time.RFC3339Nano))
	}
	if err := Check(v); err != nil {
		return row.Value{}, Unheld(f, err)
	}
	return v, nil
}

// Unheld is the invalid item of a value that not every database can hold.
func Unheld(f *row.Field, err error) error {
	if f.Hidden {
		err = errors.New("not every database can store the value")
	}
	return exception.InvalidItem("", exception.ClassParse, fmt.Errorf("%w: change it in the SQL, or exclude its row with a `where`", row.FieldError(f.Name, err)))
}

// Misfit is the invalid item of a value not of the field's type.
func Misfit(f *row.Field, what string) error {
	return exception.InvalidItem("", exception.ClassParse, fault.Named(f.Name, "%s is not of type %s", f.Quoted(what), f.Type()))
}
