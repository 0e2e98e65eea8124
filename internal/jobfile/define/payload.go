package define

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

func encodePayload(v any) (any, error) {
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
		return literal("null")
	case bool:
		if v {
			return literal("true")
		}
		return literal("false")
	case json.Number:
		return literal(v)
	case []any:
		items := list{}
		for _, item := range v {
			items = append(items, payload(item))
		}
		return items
	case map[string]any:
		fields := object{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			fields = append(fields, pair{key, payload(v[key])})
		}
		return fields
	}
	return quoted(v.(string)) //nolint:forcetypeassert // JSON has nothing else
}
