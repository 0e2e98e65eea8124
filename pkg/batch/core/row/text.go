package row

import (
	"cmp"
	"errors"
	"strings"
)

// Parse reads text: Nulls become null or Default; others must fit or are coerced. Blanks around are ignored,
// except in strings. A misfit is an invalid item.
//
// A string may keep the text.
func (f *Field) Parse(text string) (Value, error) {
	if f.IsNull(text) {
		if !f.Nullable && f.Default.IsNull() {
			return Value{}, f.misfit(text, "the field is not nullable")
		}
		if f.Exact {
			return f.exactly(text, f.Default)
		}
		return f.Default, nil
	}
	v, err := f.parse(text)
	if err != nil {
		return f.Coerced(text, err)
	}
	if f.Exact {
		return f.exactly(text, v)
	}
	return v, nil
}

func (f *Field) parse(text string) (Value, error) {
	switch f.Kind {
	case String:
		return StringValue(text), nil
	case Int:
		if i, ok := shortInt(text); ok {
			return IntValue(i), nil
		}
		return f.parseNumber(text)
	case Float, DecimalKind:
		return f.parseNumber(text)
	case Bool:
		switch strings.TrimSpace(text) {
		case "true":
			return BoolValue(true), nil
		case "false":
			return BoolValue(false), nil
		}
		return f.parseWord(text)
	case DateKind:
		d, err := f.times().parseDate(strings.TrimSpace(text))
		if err != nil {
			return Value{}, f.misfit(text, "expected "+cmp.Or(f.Format, "yyyy-MM-dd"))
		}
		return DateValue(d), nil
	case Timestamp:
		t, err := f.times().parse(strings.TrimSpace(text))
		if err != nil {
			return Value{}, f.misfit(text, whyNoTime(err, cmp.Or(f.Format, "yyyy-MM-ddTHH:mm:ss.SSSXXX")))
		}
		return TimestampValue(t), nil
	case JSONKind:
		j, err := ParseJSON(text)
		if err != nil {
			return Value{}, f.misfit(text, err.Error())
		}
		return JSONValue(j), nil
	case UUIDKind:
		id, ok := canonicalUUID(text)
		if !ok {
			return Value{}, f.misfit(text, uuidForms)
		}
		return Value{kind: UUIDKind, text: id}, nil
	case BytesKind:
		text = strings.TrimSpace(text)
		v, why := parseBytes(f.Format, text)
		if why != "" {
			return Value{}, f.misfit(text, why)
		}
		return v, nil
	case Null:
	}
	if f.Kind.IsList() {
		return f.lists().parse(text)
	}
	return Value{}, f.misfit(text, "the field has no kind")
}

func whyNoTime(err error, format string) string {
	var gap *gapError
	if errors.As(err, &gap) || errors.Is(err, errFiner) {
		return err.Error()
	}
	return "expected " + format
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

// AppendText appends v in the field's form; a null is the first of Nulls, or nothing.
func (f *Field) AppendText(dst []byte, v Value) []byte {
	switch {
	case v.IsNull():
		if len(f.Nulls) > 0 {
			return append(dst, f.Nulls[0]...)
		}
		return dst
	case f.DecimalSeparator != "" && (v.kind == DecimalKind || v.kind == Float):
		return append(dst, strings.Replace(v.String(), ".", f.DecimalSeparator, 1)...)
	case v.kind == BytesKind:
		return appendBytes(f.Format, dst, v)
	case v.kind == Bool && f.HasWords():
		return append(dst, wordOf(f, v.Bool())...)
	case v.kind.IsList() && f.Kind == v.kind:
		return f.lists().append(dst, v)
	case f.layout == "" && f.epoch == 0:
		return v.AppendText(dst)
	case v.kind == DateKind, v.kind == Timestamp:
		return f.times().append(dst, v)
	}
	return v.AppendText(dst)
}

// Counts reports whether the text is a number since 1970-01-01 UTC.
func (f *Field) Counts() bool { return f.epoch != 0 }

func (f *Field) times() times { return times{layout: f.layout, epoch: f.epoch, zone: f.Zone} }
