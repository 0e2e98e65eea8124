package row

import "time"

// anyList is Any of a list; nil of any other value.
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

func sliceOf[T any](v Value, get func(Value) T) []T {
	elements := v.Elements()
	list := make([]T, len(elements))
	for i, e := range elements {
		list[i] = get(e)
	}
	return list
}

// listOfAny is the inverse of anyList; false: x is none of its answers.
func listOfAny(x any) (Value, bool) {
	switch x := x.(type) {
	case []string:
		return listFrom(String, x, StringValue)
	case []int64:
		return listFrom(Int, x, IntValue)
	case []float64:
		return listFrom(Float, x, FloatValue)
	case []Decimal:
		return listFrom(DecimalKind, x, DecimalValue)
	case []bool:
		return listFrom(Bool, x, BoolValue)
	case []Date:
		return listFrom(DateKind, x, DateValue)
	case []time.Time:
		return listFrom(Timestamp, x, TimestampValue)
	case []UUID:
		return listFrom(UUIDKind, x, UUIDValue)
	}
	return Value{}, false
}

func listFrom[T any](elem Kind, list []T, value func(T) Value) (Value, bool) {
	elements := make([]Value, len(list))
	for i, x := range list {
		elements[i] = value(x)
	}
	v, err := ListValue(elem, elements)
	return v, err == nil
}
