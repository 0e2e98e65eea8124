package row

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// Parse reads text: Nulls become null or Default; others must fit or are coerced. Blanks around are ignored,
// except in strings. A misfit is an invalid item.
//
// A string may keep the text.
func (f *Field) Parse(text string) (Value, error) {
	if f.isNull(text) {
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
		d, err := f.parseDate(strings.TrimSpace(text))
		if err != nil {
			return Value{}, f.misfit(text, "expected "+f.formatOr("yyyy-MM-dd"))
		}
		return DateValue(d), nil
	case Timestamp:
		t, err := f.parseTime(strings.TrimSpace(text))
		if err != nil {
			return Value{}, f.misfit(text, f.whyNoTime(err))
		}
		return TimestampValue(t), nil
	case JSONKind:
		return f.parseJSON(text)
	case UUIDKind:
		id, ok := canonicalUUID(text)
		if !ok {
			return Value{}, f.misfit(text, uuidForms)
		}
		return Value{kind: UUIDKind, text: id}, nil
	case BytesKind:
		return f.parseBytes(text)
	case Null:
	}
	if f.Kind.IsList() {
		return f.parseList(text)
	}
	return Value{}, f.misfit(text, "the field has no kind")
}

func (f *Field) whyNoTime(err error) string {
	var gap *gapError
	if errors.As(err, &gap) {
		return gap.Error()
	}
	if errors.Is(err, errFiner) {
		return errFiner.Error()
	}
	return "expected " + f.formatOr("yyyy-MM-ddTHH:mm:ss.SSSXXX")
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
		return f.appendBytes(dst, v)
	case v.kind == Bool && f.HasWords():
		return append(dst, f.word(v.Bool())...)
	case v.kind.IsList() && f.Kind == v.kind:
		return f.appendList(dst, v)
	case f.layout == "" && f.epoch == 0:
		return v.AppendText(dst)
	case v.kind == DateKind, v.kind == Timestamp:
		return f.appendTime(dst, v)
	}
	return v.AppendText(dst)
}

// Check reports a misfit as an invalid item.
func (f *Field) Check(v Value) error {
	if v.kind == f.Kind || (v.kind == Null && f.Nullable) {
		return nil
	}
	if v.kind == Null {
		return f.unfit("null", "the field is not nullable")
	}
	return f.misfit(v.String(), "it is "+article(v.kind))
}

func (f *Field) isNull(text string) bool {
	if f.Kind == JSONKind && isJSONNull(text) {
		return true
	}
	if f.Nulls == nil {
		return text == "" && f.Kind != String && f.Kind != BytesKind
	}
	for _, n := range f.Nulls {
		if n == text {
			return true
		}
	}
	return false
}

func (f *Field) parseTime(text string) (time.Time, error) {
	if f.epoch != 0 {
		t, cut, err := parseEpoch(text, f.epoch)
		if err == nil && cut {
			err = errFiner
		}
		return t, err
	}
	if f.layout != "" {
		t, err := f.parseWith(f.layout, text)
		if err == nil && t.Nanosecond()%1000 != 0 {
			err = errFiner
		}
		return t, err
	}
	if micros, hasZone, ok := parseISOTime(text); ok && (hasZone || f.Zone == nil) {
		return time.UnixMicro(micros).UTC(), nil
	}
	var err error
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999Z07"} {
		var t time.Time
		var gap *gapError
		if t, err = f.parseWith(layout, text); err == nil && isFiner(text) {
			return t, errFiner
		} else if err == nil || errors.As(err, &gap) {
			return t, err
		}
	}
	return time.Time{}, err
}

func (f *Field) layoutOr(def string) string {
	if f.layout != "" {
		return f.layout
	}
	return def
}

func (f *Field) formatOr(def string) string {
	if f.Format != "" {
		return f.Format
	}
	return def
}

func (f *Field) misfit(text, why string) error { return f.unfit(quoteShort(text), why) }

// null has none.
func (f *Field) unfit(shown, why string) error {
	msg := fmt.Sprintf("field %s: %s is not %s", f.Name, f.Quoted(shown), article(f.Kind))
	if why != "" {
		msg += " (" + why + ")"
	}
	return exception.InvalidItem("", exception.ClassParse, fmt.Errorf("%s", msg))
}

// Quoted is the text, or a replacement if hidden.
func (f *Field) Quoted(text string) string {
	if f.Hidden {
		return "the value"
	}
	return text
}

func article(k Kind) string {
	switch k {
	case Int:
		return "an int"
	case JSONKind, BytesKind:
		return k.String()
	default:
		return "a " + k.String()
	}
}

func quoteShort(text string) string {
	const maxLen = 60
	if len(text) > maxLen {
		text = text[:maxLen] + "…"
	}
	return strconv.Quote(text)
}

func fieldLayout(f *Field) (string, error) {
	if f.Format == "" || f.Kind.IsList() || epochUnit(f.Format) != 0 && (f.Kind == DateKind || f.Kind == Timestamp) {
		return "", nil
	}
	switch {
	case f.Kind == BytesKind && f.Format != formatBase64 && f.Format != formatHex:
		return "", fmt.Errorf("field %q: format %q is not a format of bytes: write %s or %s", f.Name, f.Format, formatBase64, formatHex)
	case f.Kind == BytesKind:
		return "", nil
	case f.Kind != DateKind && f.Kind != Timestamp:
		return "", fmt.Errorf("field %q: format is for date, timestamp and bytes, not for %s", f.Name, f.Kind)
	}
	layout, err := Layout(f.Format)
	if err != nil {
		return "", fmt.Errorf("field %q: %w", f.Name, err)
	}
	return layout, nil
}

var layoutTokens = [...]struct{ pattern, layout string }{
	{"yyyy", "2006"}, {"MM", "01"}, {"dd", "02"}, {"HH", "15"}, {"mm", "04"}, {"ss", "05"},
	{"SSSSSS", "000000"}, {"SSS", "000"}, {"XXX", "Z07:00"}, {"yy", "06"}, {"M", "1"}, {"d", "2"},
	{"MMMM", "January"}, {"MMM", "Jan"}, {"EEEE", "Monday"}, {"EEE", "Mon"}, {"hh", "03"}, {"h", "3"}, {"a", "PM"}, {"XX", "Z0700"},
}

const layoutLetters = "yyyy yy MMMM MMM MM M EEEE EEE dd d HH hh h a mm ss SSS SSSSSS XXX XX"

// Layout translates a pattern into Go's: yyyy, yy (69 to 99 are 19xx, 00 to 68 20xx), MMMM January, MMM Jan,
// MM, M, EEEE Monday, EEE Mon, dd, d, HH, hh and h with a (AM, PM), mm, ss, SSS, SSSSSS, XXX +01:00, XX +0100.
// Quoted text and non-letters stand for themselves; another letter or digit is an error.
func Layout(format string) (string, error) {
	var out strings.Builder
	for rest := format; rest != ""; {
		if rest[0] == '\'' {
			end := strings.IndexByte(rest[1:], '\'')
			if end < 0 {
				return "", fmt.Errorf("format %q: a quote is not closed", format)
			}
			if err := plainText(format, rest[1:1+end]); err != nil {
				return "", err
			}
			out.WriteString(rest[1 : 1+end])
			rest = rest[end+2:]
			continue
		}
		run := letterRun(rest)
		if run == 0 {
			if err := plainText(format, rest[:1]); err != nil {
				return "", err
			}
			out.WriteByte(rest[0])
			rest = rest[1:]
			continue
		}
		if before := out.String(); rest[0] == 'S' && !strings.HasSuffix(before, ".") && !strings.HasSuffix(before, ",") {
			return "", fmt.Errorf("format %q: %s must follow a point or a comma: ss.SSS", format, rest[:run])
		}
		layout, ok := tokenLayout(rest[:run])
		if rest[:run] == "T" || rest[:run] == "Z" {
			layout, ok = rest[:run], true
		}
		if !ok {
			return "", fmt.Errorf("format %q: %q is unknown (allowed: %s, other text in single quotes; or epoch, epoch_ms, epoch_us)", format, rest[:run], layoutLetters)
		}
		out.WriteString(layout)
		rest = rest[run:]
	}
	return out.String(), nil
}

func letterRun(s string) int {
	c := s[0]
	if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
		return 0
	}
	n := 1
	for n < len(s) && s[n] == c {
		n++
	}
	return n
}

func tokenLayout(run string) (string, bool) {
	for _, t := range layoutTokens {
		if t.pattern == run {
			return t.layout, true
		}
	}
	return "", false
}
