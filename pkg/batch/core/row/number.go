package row

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// FitDecimal fills d to the field's scale; more digits are an invalid item.
func (f *Field) FitDecimal(d Decimal) (Value, error) {
	if f.Scale == nil || d.Scale() == *f.Scale {
		return DecimalValue(d), nil
	}
	fit, err := d.Round(*f.Scale, RoundDown)
	switch {
	case err != nil:
		return Value{}, f.misfit(d.String(), err.Error())
	case !fit.Equal(d):
		return Value{}, f.misfit(d.String(), fmt.Sprintf("the field has %d digits after the point; round(x, %d) drops the rest", *f.Scale, *f.Scale))
	}
	return DecimalValue(fit), nil
}

func (f *Field) parseNumber(text string) (Value, error) {
	plain := strings.TrimSpace(text)
	if f.TrailingMinus || f.hasSeparators() { // rare, and the form costs as much as a short number
		var ok bool
		if plain, ok = f.numbers().plain(text); !ok {
			return Value{}, f.misfit(text, "")
		}
	}
	switch f.Kind {
	case Int:
		if i, err := strconv.ParseInt(plain, 10, 64); err == nil {
			return IntValue(i), nil
		}
	case Float:
		if x, err := ParseFloat(plain); err == nil {
			return FloatValue(x), nil
		}
	default:
		d, err := ParseDecimal(plain)
		if err == nil {
			return f.FitDecimal(d)
		} else if !errors.Is(err, errNoDecimal) {
			return Value{}, f.misfit(text, err.Error())
		}
	}
	why := ""
	if strings.Contains(plain, ",") && !f.hasSeparators() && !f.Hidden {
		why = "a comma in it needs decimal_separator or thousands_separator"
	}
	if _, ok := convert(f.Kind, plain); ok && f.Kind == Int && why == "" {
		why = "coerce: convert accepts it"
	}
	return Value{}, f.misfit(text, why)
}

func (f *Field) numbers() numbers {
	return numbers{decimal: f.DecimalSeparator, thousands: f.ThousandsSeparator, trailingMinus: f.TrailingMinus}
}

func (f *Field) hasSeparators() bool { return f.DecimalSeparator != "" || f.ThousandsSeparator != "" }

type numbers struct {
	decimal, thousands string // separators
	trailingMinus      bool
}

func (n numbers) separated() bool { return n.decimal != "" || n.thousands != "" }

func (n numbers) point() string { return cmp.Or(n.decimal, ".") }

// false if separators are misplaced.
func (n numbers) plain(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if last := len(text) - 1; n.trailingMinus && last > 0 && text[last] == '-' && text[0] >= '0' && text[0] <= '9' {
		text = "-" + strings.TrimSpace(text[:last])
	}
	if !n.separated() {
		return text, true
	}
	whole, fraction, has := strings.Cut(text, n.point())
	if n.thousands != "" {
		groups := strings.Split(n.oneSeparator(whole), n.thousands)
		first := strings.TrimLeft(groups[0], "+-")
		for _, g := range groups[1:] {
			if len(g) != 3 || first == "" || len(first) > 3 {
				return "", false
			}
		}
		whole = strings.Join(groups, "")
	}
	if n.point() != "." && strings.Contains(whole+fraction, ".") {
		return "", false
	}
	if has {
		whole += "." + fraction
	}
	return whole, true
}

// Non-breaking blanks and apostrophes count as the separator.
func (n numbers) oneSeparator(whole string) string {
	alike := ""
	switch n.thousands {
	case " ", "\u00a0", "\u202f", "\u2009":
		alike = " \u00a0\u202f\u2009"
	case "'", "\u2019":
		alike = "'\u2019"
	}
	if !strings.ContainsAny(whole, alike) {
		return whole
	}
	for _, c := range alike {
		whole = strings.ReplaceAll(whole, string(c), n.thousands)
	}
	return whole
}
