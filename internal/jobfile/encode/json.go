package encode

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// JSON encodes v as encoding/json does.
func JSON(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return payload(value), nil
}

func payload(v any) any {
	switch v := v.(type) {
	case nil:
		return Literal("null")
	case bool:
		if v {
			return Literal("true")
		}
		return Literal("false")
	case json.Number:
		return Literal(v)
	case []any:
		items := List{}
		for _, item := range v {
			items = append(items, payload(item))
		}
		return items
	case map[string]any:
		fields := Object{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			fields = append(fields, Pair{key, payload(v[key])})
		}
		return fields
	}
	return Quoted(v.(string)) //nolint:forcetypeassert // JSON has nothing else
}
