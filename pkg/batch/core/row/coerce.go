package row

import (
	"slices"
	"strconv"
	"strings"
)

// Coerce treats a value that does not fit.
type Coerce uint8

// Except with CoerceError, a value is converted if that loses nothing (see [Field.Coerced]).
const (
	// CoerceError makes the item invalid.
	CoerceError Coerce = iota
	// CoerceConvert makes the item invalid too.
	CoerceConvert
	// CoerceNull makes the value null; the field is nullable.
	CoerceNull
	// CoerceDefault uses the field's Default, which must be set.
	CoerceDefault
)

var coerceNames = [...]string{CoerceError: "error", CoerceConvert: "convert", CoerceNull: "null", CoerceDefault: "default"}

// String is the job file's name.
func (c Coerce) String() string {
	if int(c) < len(coerceNames) {
		return coerceNames[c]
	}
	return "coerce(" + strconv.Itoa(int(c)) + ")"
}

// CoerceByName inverts String.
func CoerceByName(name string) (Coerce, bool) {
	c := slices.Index(coerceNames[:], name)
	return Coerce(max(c, 0)), c >= 0
}

func convert(kind Kind, text string) (Value, bool) {
	if kind == Int {
		x, err := ParseFloat(text)
		if err != nil {
			return Value{}, false
		}
		const exact = 1 << 53 // beyond it whole floats may differ from their text
		i, whole := IntOf(x)
		return IntValue(i), whole && i > -exact && i < exact
	}
	if kind == Bool {
		switch strings.ToLower(text) {
		case "1", "yes", "y", "on", "t", "true":
			return BoolValue(true), true
		case "0", "no", "n", "off", "f", "false":
			return BoolValue(false), true
		}
	}
	return Value{}, false
}
