package sqlvalue

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Nothing is rounded: digits finer than a microsecond, or beyond those of a float, do not fit.
func parseText(f *row.Field, text string) (row.Value, bool) {
	switch f.Kind {
	case row.DateKind, row.Timestamp:
		return parseDayOrTime(f, strings.TrimSpace(text))
	case row.Bool:
		f.Coerce = row.CoerceConvert
	default:
	}
	v, err := f.Parse(text)
	if err != nil {
		return v, false
	}
	switch f.Kind {
	case row.Float:
		return v, isTextOf(text, v.Float())
	case row.ListOf(row.Float):
		return v, areTextsOf(text, v)
	default:
		return v, true
	}
}

func areTextsOf(text string, list row.Value) bool {
	exact, err := (&row.Field{Kind: row.ListOf(row.DecimalKind), Nulls: []string{}}).Parse(text)
	if err != nil {
		return false
	}
	floats := list.Elements()
	for i, d := range exact.Elements() {
		if !d.IsNull() && !isTextOf(d.String(), floats[i].Float()) {
			return false
		}
	}
	return true
}

func parseDayOrTime(f *row.Field, text string) (row.Value, bool) {
	if d, err := row.ParseDate(text); err == nil {
		v, ok := ConvertIn(row.DateValue(d), f.Kind, f.Zone)
		return v, ok
	}
	const minutes = len("2006-01-02T15:04")
	if len(text) == minutes {
		text += ":00"
	}
	v, err := (&row.Field{Kind: row.Timestamp, Zone: f.Zone}).Parse(text)
	if err != nil {
		return v, false
	}
	return ConvertIn(v, f.Kind, f.Zone)
}

// isTextOf accepts the shortest decimal that reads back as x (rule D7), or the one of 17 digits.
func isTextOf(text string, x float64) bool {
	d, err := row.ParseDecimal(strings.TrimSpace(text))
	if err != nil { // more digits than a decimal has: 1e-1100 is not 0
		return false
	}
	if short, err := row.DecimalOfFloat(x); err == nil && short.Equal(d) {
		return true
	}
	long, err := row.ParseDecimal(strconv.FormatFloat(x, 'g', 17, 64))
	return err == nil && long.Equal(d)
}

// Clock reads HH:mm[:ss[.fraction]], also with AM or PM, with an offset if zoned, and returns the
// fraction without final zeros. False: something else.
func Clock(text string, zoned bool) (fraction string, ok bool) {
	text = strings.TrimSpace(text)
	if zoned {
		i := strings.LastIndexAny(text, "+-Z")
		if i < 0 || !isOffset(text[i:]) {
			return "", false
		}
		text = strings.TrimSpace(text[:i])
	}
	half := ""
	if n := len(text) - 2; n > 0 && (strings.EqualFold(text[n:], "am") || strings.EqualFold(text[n:], "pm")) {
		half, text = strings.ToUpper(text[n:]), strings.TrimSpace(text[:n])
	}
	text, fraction, hasFraction := strings.Cut(text, ".")
	if hasFraction && (fraction == "" || strings.Trim(fraction, "0123456789") != "") {
		return "", false
	}
	if text == "24:00:00" && half == "" && strings.Trim(fraction, "0") == "" {
		return "", true
	}
	layouts := []string{"15:04:05", "15:04"}
	if half != "" {
		layouts, text = []string{"3:04:05PM", "3:04PM"}, text+half
	}
	for _, layout := range layouts {
		if _, err := time.Parse(layout, text); err == nil {
			return strings.TrimRight(fraction, "0"), !hasFraction || strings.Contains(layout, "05")
		}
	}
	return "", false
}

func isOffset(text string) bool {
	if text == "Z" {
		return true
	}
	for _, layout := range []string{"-07:00", "-0700", "-07"} {
		if _, err := time.Parse(layout, text); err == nil {
			return true
		}
	}
	return false
}

// ChangesAsNumber reports a text that numeric affinity would change: 01569, 1e5, ' 12'; not 1569 or
// x12.
func ChangesAsNumber(text string) bool {
	plain := strings.Trim(text, " \t\n\v\f\r")
	if plain == "" || strings.Trim(plain, "+-.0123456789eE") != "" {
		return false
	}
	if n, err := strconv.ParseInt(plain, 10, 64); err == nil {
		return strconv.FormatInt(n, 10) != text
	}
	x, err := strconv.ParseFloat(plain, 64)
	return (err == nil || errors.Is(err, strconv.ErrRange)) && row.FloatText(x) != text
}
