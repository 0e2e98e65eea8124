package item

import (
	"bytes"
	"encoding/json"

	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// looseValue reads a JSON value of a field that defines its nulls, counts time, or coerces misfits: a
// number or a bool for a text field is its text, an object or array its JSON, and a text for a number
// or a bool is parsed as one.
func looseValue(f *row.Field, raw json.RawMessage) (row.Value, error) {
	text := string(raw)
	if raw[0] == '"' {
		var err error
		if text, err = jsontext.Unquote(raw); err != nil {
			return row.Value{}, jsonMisfit(f, raw)
		}
	}
	if f.Nulls != nil && f.IsNull(text) {
		return f.Missing()
	}
	if f.Coerce == row.CoerceError && !fitsJSON(f, raw) {
		return row.Value{}, jsonMisfit(f, raw)
	}
	if f.Kind == row.String && (raw[0] == '{' || raw[0] == '[') {
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err == nil {
			text = compact.String()
		}
	}
	if raw[0] != '"' && (f.DecimalSeparator != "" || f.ThousandsSeparator != "") {
		plain := *f // a JSON number has a point
		plain.DecimalSeparator, plain.ThousandsSeparator = "", ""
		return plain.Parse(text)
	}
	return f.Parse(text)
}

// fitsJSON reports whether a JSON value has the JSON type of the field's kind.
func fitsJSON(f *row.Field, raw json.RawMessage) bool {
	isText, isBool, isNumber := raw[0] == '"', raw[0] == 't' || raw[0] == 'f', raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'
	switch f.Kind {
	case row.Int, row.Float:
		return isNumber
	case row.DecimalKind: // many sources write money as a text
		return isNumber || isText
	case row.Bool:
		return isBool || isText && f.HasWords()
	case row.DateKind, row.Timestamp:
		return isText || isNumber && f.Counts()
	default:
		return isText
	}
}
