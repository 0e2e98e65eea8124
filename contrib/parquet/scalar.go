package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"
	"unicode/utf8"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// scalar is the type of a leaf, and its value in a row.
type scalar struct {
	name  string // for messages
	kind  row.Kind
	value func(v pq.Value, zone *time.Location) (row.Value, error)
}

// scalarOf returns the type of a leaf; an error if no kind of value holds it.
func scalarOf(e format.SchemaElement) (scalar, error) {
	physical := pq.Kind(e.Type.V)
	if l := e.LogicalType.Value; l != nil {
		return logical(l, physical, e)
	}
	if e.ConvertedType.Valid {
		return converted(e.ConvertedType.V, physical, e)
	}
	switch physical {
	case pq.Boolean:
		return scalar{"BOOLEAN", row.Bool, func(v pq.Value, _ *time.Location) (row.Value, error) { return row.BoolValue(v.Boolean()), nil }}, nil
	case pq.Int32, pq.Int64:
		return integer(physical, true, ""), nil
	case pq.Int96:
		return scalar{"INT96", row.Timestamp, int96}, nil
	case pq.Float:
		return scalar{"FLOAT", row.Float, func(v pq.Value, _ *time.Location) (row.Value, error) { return row.FloatValue(row.Real(v.Float())), nil }}, nil
	case pq.Double:
		return scalar{"DOUBLE", row.Float, func(v pq.Value, _ *time.Location) (row.Value, error) { return row.FloatValue(v.Double()), nil }}, nil
	case pq.ByteArray, pq.FixedLenByteArray:
		return scalar{"BYTE_ARRAY", row.BytesKind, func(v pq.Value, _ *time.Location) (row.Value, error) { return row.BytesValue(v.ByteArray()), nil }}, nil
	}
	return unusable("a type that this surfin does not know")
}

func unusable(name string) (scalar, error) {
	return scalar{name: name}, fmt.Errorf("it is %s, for which an item has no type", name)
}

func logical(l format.LogicalTypeValue, physical pq.Kind, e format.SchemaElement) (scalar, error) {
	switch l := l.(type) {
	case *format.StringType, *format.EnumType:
		return text("STRING"), nil
	case *format.JsonType:
		return scalar{"JSON", row.JSONKind, document}, nil
	case *format.DecimalType:
		return decimal(physical, int(l.Precision), int(l.Scale))
	case *format.DateType:
		return scalar{"DATE", row.DateKind, date}, nil
	case *format.IntType:
		return integer(physical, l.IsSigned, l.String()), nil
	case *format.TimestampType:
		if l.Unit.Value == nil {
			break
		}
		return timestamp(l.Unit.Value.Duration(), l.IsAdjustedToUTC, l.String()), nil
	case *format.UUIDType:
		return scalar{"UUID", row.UUIDKind, identifier}, nil
	case *format.Float16Type:
		return scalar{"FLOAT16", row.Float, half}, nil
	}
	return unusable(l.String())
}

func converted(c deprecated.ConvertedType, physical pq.Kind, e format.SchemaElement) (scalar, error) {
	switch c {
	case deprecated.UTF8, deprecated.Enum:
		return text("STRING"), nil
	case deprecated.Json:
		return scalar{"JSON", row.JSONKind, document}, nil
	case deprecated.Decimal:
		return decimal(physical, int(e.Precision.V), int(e.Scale.V))
	case deprecated.Date:
		return scalar{"DATE", row.DateKind, date}, nil
	case deprecated.TimestampMillis:
		return timestamp(time.Millisecond, true, "TIMESTAMP_MILLIS"), nil
	case deprecated.TimestampMicros:
		return timestamp(time.Microsecond, true, "TIMESTAMP_MICROS"), nil
	case deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Int64:
		return integer(physical, true, ""), nil
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		return integer(physical, false, "UINT"), nil
	case deprecated.TimeMillis, deprecated.TimeMicros:
		return unusable("TIME")
	case deprecated.Interval:
		return unusable("INTERVAL")
	case deprecated.Bson:
		return unusable("BSON")
	case deprecated.Map, deprecated.MapKeyValue, deprecated.List:
	}
	return unusable("a leaf with the annotation of a group")
}

func text(name string) scalar {
	return scalar{name, row.String, func(v pq.Value, _ *time.Location) (row.Value, error) {
		b := v.ByteArray()
		if !utf8.Valid(b) {
			return row.Value{}, fmt.Errorf("%.60q is not valid UTF-8", b)
		}
		return row.StringValue(string(b)), nil
	}}
}

func document(v pq.Value, _ *time.Location) (row.Value, error) {
	j, err := row.ParseJSON(string(v.ByteArray()))
	return row.JSONValue(j), err
}

func identifier(v pq.Value, _ *time.Location) (row.Value, error) {
	b := v.ByteArray()
	if len(b) != len(row.UUID{}) {
		return row.Value{}, fmt.Errorf("a UUID of %d bytes", len(b))
	}
	return row.UUIDValue(row.UUID(b)), nil
}

func date(v pq.Value, _ *time.Location) (row.Value, error) {
	return row.DateValue(row.Date(v.Int32())), nil
}

func half(v pq.Value, _ *time.Location) (row.Value, error) {
	b := v.ByteArray()
	if len(b) != 2 {
		return row.Value{}, fmt.Errorf("a FLOAT16 of %d bytes", len(b))
	}
	bits := binary.LittleEndian.Uint16(b)
	exponent, fraction := int(bits>>10&31), float64(bits&1023)
	x := math.Ldexp(1024+fraction, exponent-25)
	switch exponent {
	case 0:
		x = math.Ldexp(fraction, -24)
	case 31:
		if x = math.Inf(1); fraction != 0 {
			x = math.NaN()
		}
	}
	if bits>>15 != 0 {
		x = -x
	}
	return row.FloatValue(x), nil
}

func integer(physical pq.Kind, signed bool, name string) scalar {
	s := scalar{name: name, kind: row.Int}
	if name == "" {
		s.name = physical.String()
	}
	switch {
	case physical == pq.Int32 && signed:
		s.value = func(v pq.Value, _ *time.Location) (row.Value, error) { return row.IntValue(int64(v.Int32())), nil }
	case physical == pq.Int32:
		s.value = func(v pq.Value, _ *time.Location) (row.Value, error) { return row.IntValue(int64(v.Uint32())), nil }
	case signed:
		s.value = func(v pq.Value, _ *time.Location) (row.Value, error) { return row.IntValue(v.Int64()), nil }
	default:
		s.value = func(v pq.Value, _ *time.Location) (row.Value, error) {
			if u := v.Uint64(); u > math.MaxInt64 { // a decimal holds it
				d, err := row.ParseDecimal(new(big.Int).SetUint64(u).String())
				return row.DecimalValue(d), err
			}
			return row.IntValue(v.Int64()), nil
		}
	}
	return s
}

const mostDigits = 38

func decimal(physical pq.Kind, precision, scale int) (scalar, error) {
	s := scalar{name: fmt.Sprintf("DECIMAL(%d,%d)", precision, scale), kind: row.DecimalKind}
	if precision < 1 || precision > mostDigits || scale < 0 || scale > precision {
		return unusable(s.name)
	}
	switch physical {
	case pq.Int32:
		s.value = func(v pq.Value, _ *time.Location) (row.Value, error) { return short(int64(v.Int32()), scale) }
	case pq.Int64:
		s.value = func(v pq.Value, _ *time.Location) (row.Value, error) { return short(v.Int64(), scale) }
	case pq.ByteArray, pq.FixedLenByteArray:
		s.value = func(v pq.Value, _ *time.Location) (row.Value, error) { return long(v.ByteArray(), scale) }
	default:
		return unusable(s.name + " as " + physical.String())
	}
	return s, nil
}

func short(n int64, scale int) (row.Value, error) {
	d, err := row.NewDecimal(n, scale)
	return row.DecimalValue(d), err
}

// long is a decimal of big-endian bytes in two's complement.
func long(b []byte, scale int) (row.Value, error) {
	for len(b) > 8 && (b[0] == 0 && b[1]>>7 == 0 || b[0] == 255 && b[1]>>7 == 1) {
		b = b[1:]
	}
	if len(b) <= 8 {
		var n int64
		if len(b) > 0 {
			n = int64(int8(b[0]))
			for _, c := range b[1:] {
				n = n<<8 | int64(c)
			}
		}
		return short(n, scale)
	}
	n := new(big.Int).SetBytes(b)
	if b[0]>>7 == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	d, err := row.ParseDecimal(fmt.Sprintf("%se-%d", n, scale))
	return row.DecimalValue(d), err
}

var errYear = errors.New("the year of the timestamp is not between 1 and 9999")

// timestamp is an instant, or the reading of a clock in the zone of the job.
func timestamp(unit time.Duration, utc bool, name string) scalar {
	perSecond := int64(time.Second / unit)
	return scalar{name, row.Timestamp, func(v pq.Value, zone *time.Location) (row.Value, error) {
		n := v.Int64()
		seconds, rest := n/perSecond, n%perSecond
		t := time.Unix(seconds, rest*int64(unit)).UTC()
		if y := t.Year(); y < 1 || y > 9999 {
			return row.Value{}, errYear
		}
		if !utc {
			var err error
			if t, err = row.LocalTime(t, zone); err != nil {
				return row.Value{}, err
			}
		}
		return row.TimestampValue(t), nil
	}}
}

// int96 is the nanoseconds of a day and the number of the Julian day, in UTC.
func int96(v pq.Value, _ *time.Location) (row.Value, error) {
	const unixDay = 2440588
	x := v.Int96()
	days, nanos := int64(int32(x[2]))-unixDay, int64(x[1])<<32|int64(x[0])
	t := time.Unix(days*86400+nanos/int64(time.Second), nanos%int64(time.Second)).UTC()
	if y := t.Year(); y < 1 || y > 9999 {
		return row.Value{}, errYear
	}
	return row.TimestampValue(t), nil
}
