package row

import (
	"fmt"
	"strings"
	"time"
)

// Any returns nil, string, int64, float64, bool, Date, time.Time, Decimal, JSON, UUID or []byte; for a list a
// slice, of pointers if one is null. It boxes: hot paths switch on Kind.
func (v Value) Any() any {
	switch v.kind {
	case Null:
		return nil
	case String:
		return v.text
	case Int:
		return v.Int()
	case Float:
		return v.Float()
	case Bool:
		return v.Bool()
	case DateKind:
		return v.Date()
	case Timestamp:
		return v.Time()
	case DecimalKind:
		return v.Decimal()
	case JSONKind:
		return v.JSON()
	case UUIDKind:
		return v.UUID()
	case BytesKind:
		return []byte(v.text)
	}
	return anyList(v)
}

func anyList(v Value) any {
	elem, _ := v.kind.Elem()
	switch elem {
	case String:
		return sliceOf(v, Value.Str)
	case Int:
		return sliceOf(v, Value.Int)
	case Float:
		return sliceOf(v, Value.Float)
	case DecimalKind:
		return sliceOf(v, Value.Decimal)
	case Bool:
		return sliceOf(v, Value.Bool)
	case DateKind:
		return sliceOf(v, Value.Date)
	case Timestamp:
		return sliceOf(v, Value.Time)
	case UUIDKind:
		return sliceOf(v, Value.UUID)
	default:
		return nil
	}
}

func sliceOf[T any](v Value, get func(Value) T) any {
	elements := v.Elements()
	list, nulls := make([]T, len(elements)), false
	for i, e := range elements {
		list[i] = get(e)
		nulls = nulls || e.IsNull()
	}
	if !nulls {
		return list
	}
	pointers := make([]*T, len(elements))
	for i, e := range elements {
		if !e.IsNull() {
			pointers[i] = &list[i]
		}
	}
	return pointers
}

// ValueOf inverts Any; also int, int32, float32.
func ValueOf(x any) (Value, error) {
	switch x := x.(type) {
	case nil:
		return Value{}, nil
	case string:
		return StringValue(x), nil
	case []byte:
		return BytesValue(x), nil
	case JSON:
		return JSONValue(x), nil
	case UUID:
		return UUIDValue(x), nil
	case int64:
		return IntValue(x), nil
	case int:
		return IntValue(int64(x)), nil
	case int32:
		return IntValue(int64(x)), nil
	case float64:
		return FloatValue(x), nil
	case float32:
		return FloatValue(Real(x)), nil
	case bool:
		return BoolValue(x), nil
	case Date:
		return DateValue(x), nil
	case time.Time:
		return TimestampValue(x), nil
	case Decimal:
		return DecimalValue(x), nil
	case Value:
		return x, nil
	}
	if v, is, err := listOfAny(x); is {
		return v, err
	}
	return Value{}, fmt.Errorf("a %T is not a row value (allowed: %s, lists, null)", x, strings.Join(KindNames(), ", "))
}

func listOfAny(x any) (v Value, is bool, err error) {
	for _, try := range []func(x any) (Value, bool, error){
		listFrom(String, StringValue), listFrom(Int, IntValue), listFrom(Float, FloatValue), listFrom(DecimalKind, DecimalValue),
		listFrom(Bool, BoolValue), listFrom(DateKind, DateValue), listFrom(Timestamp, TimestampValue), listFrom(UUIDKind, UUIDValue),
	} {
		if v, is, err = try(x); is {
			break
		}
	}
	return v, is, err
}

func listFrom[T any](elem Kind, value func(T) Value) func(x any) (Value, bool, error) {
	return func(x any) (Value, bool, error) {
		var elements []Value
		switch x := x.(type) {
		case []T:
			if x == nil {
				return Value{}, true, nil
			}
			for _, e := range x {
				elements = append(elements, value(e))
			}
		case []*T:
			if x == nil {
				return Value{}, true, nil
			}
			for _, e := range x {
				if e == nil {
					elements = append(elements, Value{})
				} else {
					elements = append(elements, value(*e))
				}
			}
		default:
			return Value{}, false, nil
		}
		v, err := ListValue(elem, elements)
		return v, true, err
	}
}
