package redrive

import (
	"encoding/json"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// retyped returns a row's JSON by the current field types: the job may have been corrected. Misfits
// stay, and are refused when decoded.
func retyped(doc []byte, t item.Type) []byte {
	if t.GoType() != reflect.TypeFor[item.Row]() {
		return doc
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(doc, &values); err != nil {
		return doc
	}
	changed := false
	for _, f := range t.Schema().Fields() {
		if value, other := retypedValue(&f, values[f.Source()]); other {
			values[f.Source()], changed = value, true
		}
	}
	if !changed {
		return doc
	}
	if now, err := json.Marshal(values); err == nil {
		return now
	}
	return doc
}

func retypedValue(f *row.Field, value json.RawMessage) (json.RawMessage, bool) {
	if len(value) == 0 {
		return nil, false
	}
	isText, isPlain := value[0] == '"', value[0] == '-' || value[0] >= '0' && value[0] <= '9' || value[0] == 't' || value[0] == 'f'
	switch {
	case isPlain && f.Kind == row.String:
		text, err := json.Marshal(string(value))
		return text, err == nil
	case isText && (f.Kind == row.Int || f.Kind == row.Float || f.Kind == row.DecimalKind || f.Kind == row.Bool):
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			return nil, false
		}
		v, err := f.Parse(text)
		if err != nil {
			return nil, false
		}
		if v.IsNull() {
			return json.RawMessage("null"), true
		}
		return v.AppendText(nil), true
	}
	return nil, false
}
