package item

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func jsonValue(f *row.Field, raw json.RawMessage) (row.Value, error) {
	v, err := anyJSONValue(f, raw)
	if err != nil || !f.Exact {
		return v, err
	}
	return f.ExactJSON(raw, v)
}

func anyJSONValue(f *row.Field, raw json.RawMessage) (row.Value, error) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return f.Missing()
	}
	if f.Kind == row.JSONKind {
		return jsonPart(f, raw)
	}
	if string(raw) == `""` && f.Nulls == nil && f.IsNull("") { // an empty text is not null (rule D11b)
		return f.Coerced("", emptyMisfit(f))
	}
	if f.Kind.IsList() {
		return listPart(f, raw)
	}
	if f.Nulls != nil || f.Coerce != row.CoerceError || f.Counts() || f.HasWords() {
		return looseValue(f, raw)
	}
	if raw[0] == '"' {
		if f.Kind == row.Int || f.Kind == row.Float || f.Kind == row.Bool {
			return row.Value{}, jsonMisfit(f, raw)
		}
		text, err := jsontext.Unquote(raw)
		if err != nil {
			return row.Value{}, jsonMisfit(f, raw)
		}
		return f.Parse(text)
	}
	if f.Kind == row.String && (raw[0] == '{' || raw[0] == '[') {
		return row.StringValue(string(raw)), nil // its text (rule D9c)
	}
	var v row.Value
	switch f.Kind {
	case row.Int:
		i, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			return v, jsonMisfit(f, raw)
		}
		return row.IntValue(i), nil
	case row.Float:
		x, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return v, jsonMisfit(f, raw)
		}
		return row.FloatValue(x), nil
	case row.DecimalKind:
		d, err := row.ParseDecimal(string(raw))
		if err != nil {
			return v, jsonMisfit(f, raw)
		}
		return f.FitDecimal(d)
	case row.Bool:
		if raw[0] != 't' && raw[0] != 'f' {
			return v, jsonMisfit(f, raw)
		}
		return row.BoolValue(raw[0] == 't'), nil
	default:
	}
	return v, jsonMisfit(f, raw)
}

// jsonPart returns a part of a document, already checked to be strict, unchanged.
func jsonPart(f *row.Field, raw json.RawMessage) (row.Value, error) {
	if f.Nulls != nil {
		text := string(raw)
		if raw[0] == '"' {
			var err error
			if text, err = jsontext.Unquote(raw); err != nil {
				return row.Value{}, jsonMisfit(f, raw)
			}
		}
		if f.IsNull(text) {
			return f.Missing()
		}
	}
	return row.JSONValue(row.CompactJSON(raw)), nil
}

// listPart returns an array of a document; a text is a list if the field defines its form.
func listPart(f *row.Field, raw json.RawMessage) (row.Value, error) {
	switch {
	case raw[0] == '"' && (f.Separator != "" || f.Coerce != row.CoerceError || f.Nulls != nil):
		text, err := jsontext.Unquote(raw)
		if err != nil {
			return row.Value{}, jsonMisfit(f, raw)
		}
		return f.Parse(text)
	case raw[0] != '[':
		return f.Coerced(string(raw), jsonMisfit(f, raw))
	}
	v, err := f.ParseArray(raw)
	if err != nil {
		return f.Coerced(string(raw), err)
	}
	return f.Known(v)
}

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

func jsonMisfit(f *row.Field, raw []byte) error {
	return exception.InvalidItem("", exception.ClassParse, fault.Named(f.Name, "%s is not of type %s", f.Quoted(jsontext.Shorten(raw)), f.Type()))
}

func emptyMisfit(f *row.Field) error {
	hint := ""
	if f.Nullable || !f.Default.IsNull() {
		hint = `; null_if: [""] reads it as null`
	}
	return exception.InvalidItem("", exception.ClassParse, fault.Named(f.Name, `"" is not of type %s%s`, f.Type(), hint))
}

func appendJSONValue(dst []byte, f *row.Field, v row.Value) ([]byte, error) {
	switch v.Kind() {
	case row.Null:
		return append(dst, "null"...), nil
	case row.Int, row.Bool, row.DecimalKind, row.JSONKind:
		return v.AppendText(dst), nil
	case row.Float:
		if err := v.Finite(); err != nil {
			return dst, exception.InvalidItem("", exception.ClassInvalidItem, fmt.Errorf("field %s: %w", f.Name, err))
		}
		return v.AppendText(dst), nil
	case row.String, row.UUIDKind:
		return appendJSONString(dst, v.String()), nil
	case row.DateKind, row.Timestamp, row.BytesKind:
		if f.Counts() {
			return f.AppendText(dst, v), nil
		}
		return appendJSONString(dst, string(f.AppendText(nil, v))), nil
	}
	return f.AppendArray(dst, v), nil
}

func appendJSONString(dst []byte, s string) []byte {
	plain := utf8.ValidString(s)
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] >= 0x20 && s[i] != '"' && s[i] != '\\' && s[i] < utf8.RuneSelf
	}
	if plain {
		return append(append(append(dst, '"'), s...), '"')
	}
	text, err := json.Marshal(s)
	if err != nil { // a string always has a JSON form
		panic(fmt.Sprintf("core: JSON of a string: %v", err))
	}
	return append(dst, text...)
}

// plainNumbers gives the numbers of a document of encoding/json the text of rule D7: 0.0000001 for
// 1e-7, 0 for -0. It rewrites a number by moving its point, so no digit is lost, whatever its length.
// It returns doc itself if nothing changes.
func plainNumbers(doc []byte) []byte {
	if bytes.IndexByte(doc, '-') < 0 && bytes.IndexByte(doc, '+') < 0 {
		return doc // encoding/json signs every exponent
	}
	var out []byte
	kept := 0 // doc[:kept] is in out
	for i := 0; i < len(doc); {
		switch c := doc[i]; {
		case c == '"':
			i = endOfString(doc, i)
		case c == '-' || isDigit(c):
			end := i + 1
			for end < len(doc) && (isDigit(doc[end]) || bytes.IndexByte([]byte("+-.eE"), doc[end]) >= 0) {
				end++
			}
			if text, changed := plainNumber(doc[i:end]); changed {
				out = append(append(out, doc[kept:i]...), text...)
				kept = end
			}
			i = end
		default:
			i++
		}
	}
	if kept == 0 {
		return doc
	}
	return append(out, doc[kept:]...)
}

// endOfString returns the index after the string that begins at from.
func endOfString(doc []byte, from int) int {
	for i := from + 1; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(doc)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// Exponents in this range are written out; row.appendFloat has the same bounds.
const (
	minPlainExponent = -17
	maxPlainExponent = 20
)

// plainNumber returns a JSON number without an exponent in range, and 0 for a negative zero.
func plainNumber(number []byte) (text []byte, changed bool) {
	mantissa, exponent := number, 0
	if e := bytes.IndexAny(number, "eE"); e >= 0 {
		n, err := strconv.Atoi(string(number[e+1:]))
		if err != nil {
			return number, false
		}
		mantissa, exponent = number[:e], n
	} else if number[0] != '-' || number[1] != '0' {
		return number, false
	}
	sign := mantissa[:0]
	if mantissa[0] == '-' {
		sign, mantissa = mantissa[:1], mantissa[1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	digits := append(append([]byte(nil), whole...), fraction...)
	point := len(whole) + exponent // number of digits before the point
	zeros := len(digits) - len(bytes.TrimLeft(digits, "0"))
	digits, point = bytes.TrimRight(digits[zeros:], "0"), point-zeros
	switch {
	case len(digits) == 0:
		return []byte("0"), true
	case len(mantissa) == len(number)-len(sign):
		return number, false // without an exponent, and not zero
	case point-1 < minPlainExponent || point-1 > maxPlainExponent:
		return number, false
	}
	text = append(text, sign...)
	switch {
	case point <= 0:
		text = append(append(append(text, "0."...), bytes.Repeat([]byte("0"), -point)...), digits...)
	case point >= len(digits):
		text = append(append(text, digits...), bytes.Repeat([]byte("0"), point-len(digits))...)
	default:
		text = append(append(append(text, digits[:point]...), '.'), digits[point:]...)
	}
	return text, true
}
