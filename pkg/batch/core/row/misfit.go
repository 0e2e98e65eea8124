package row

import (
	"fmt"
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
	for c, known := range coerceNames {
		if known == name {
			return Coerce(c), true
		}
	}
	return CoerceError, false
}

// Missing is the Default or null; else an invalid item.
func (f *Field) Missing() (Value, error) {
	if !f.Default.IsNull() {
		return f.Default, nil
	}
	return Value{}, f.Check(Value{})
}

// IsNull reports whether the field reads text as null.
func (f *Field) IsNull(text string) bool { return f.isNull(text) }

// Known returns the value, or the replacement of one of Nulls.
func (f *Field) Known(v Value) (Value, error) {
	if v.IsNull() || f.Nulls != nil && f.isNull(v.String()) {
		return f.Missing()
	}
	return v, nil
}

// Coerced replaces a misfit, or returns the error. Converted are: an int from 12.0 or 1e3; a bool from 1, yes,
// y, on, t, true, 0, no, n, off, f, false, in any case.
func (f *Field) Coerced(text string, misfit error) (Value, error) {
	if f.Coerce == CoerceError {
		return Value{}, misfit
	}
	if v, ok := convert(f.Kind, strings.TrimSpace(text)); ok {
		return v, nil
	}
	switch f.Coerce {
	case CoerceNull:
		return Value{}, nil
	case CoerceDefault:
		return f.Default, nil
	case CoerceError, CoerceConvert:
	}
	return Value{}, misfit
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

// Refuses Default, Coerce and Zone without effect.
func (f *Field) checkMisfits() error {
	switch {
	case !f.Default.IsNull() && f.Default.kind != f.Kind:
		return fmt.Errorf("field %q: its default is %s, not %s", f.Name, article(f.Default.kind), article(f.Kind))
	case !f.Default.IsNull() && f.Nullable:
		return fmt.Errorf("field %q has a default, so it is never null: its type is %s", f.Name, f.Kind)
	case f.Coerce == CoerceDefault && f.Default.IsNull():
		return fmt.Errorf("field %q: coerce is default, but it has no default", f.Name)
	case f.Coerce == CoerceNull && !f.Nullable:
		return fmt.Errorf("field %q: coerce is null, so its type must allow null (%s null)", f.Name, f.Kind)
	case f.Zone != nil && !f.Kind.IsList() && f.Kind != Timestamp && !(f.Kind == DateKind && epochUnit(f.Format) != 0):
		return fmt.Errorf("field %q: a zone is for timestamp, and for a date that is counted (epoch), not for %s", f.Name, f.Kind)
	}
	return nil
}
