package row

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
