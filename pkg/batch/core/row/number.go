package row

import (
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
	plain, ok := f.plainNumber(text)
	if !ok {
		return Value{}, f.misfit(text, "")
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
	if strings.Contains(plain, ",") && f.DecimalSeparator == "" && f.ThousandsSeparator == "" && !f.Hidden {
		why = "a comma in it needs decimal_separator or thousands_separator"
	}
	if _, ok := convert(f.Kind, plain); ok && f.Kind == Int && why == "" {
		why = "coerce: convert accepts it"
	}
	return Value{}, f.misfit(text, why)
}

// ParseFloat reads a finite float (rule D7); Go's 0x1p3 and 1_000 are refused.
func ParseFloat(text string) (float64, error) {
	if x, ok := shortFloat(text); ok {
		return x, nil
	}
	digits := text
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		digits = text[1:]
	}
	if len(digits) > 1 && digits[0] == '0' && digits[1]|0x20 == 'x' || strings.IndexByte(digits, '_') >= 0 {
		return 0, fmt.Errorf("%q: %w", text, strconv.ErrSyntax)
	}
	x, err := strconv.ParseFloat(text, 64)
	if err == nil && x-x != 0 { // NaN or infinite
		err = fmt.Errorf("%q: %w", text, strconv.ErrRange)
	}
	return x, err
}

// Digits and power of ten are exact floats, so the quotient is the nearest float.
func shortFloat(text string) (float64, bool) {
	powers := [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}
	const exact = 1 << 53
	d, ok := parseShort(text)
	if !ok || d.num == 0 || d.num > exact || d.num < -exact { // 0 may be -0
		return 0, false
	}
	return float64(d.num) / powers[d.scale], true
}

// Half the time of strconv; parseNumber reads the rest.
func shortInt(text string) (n int64, ok bool) {
	const most = 18
	digits := text
	if len(text) > 0 && text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > most {
		return 0, false
	}
	for i := range len(digits) {
		d := digits[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = 10*n + int64(d)
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, true
}

// false if separators are misplaced.
func (f *Field) plainNumber(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if n := len(text) - 1; f.TrailingMinus && n > 0 && text[n] == '-' && text[0] >= '0' && text[0] <= '9' {
		text = "-" + strings.TrimSpace(text[:n])
	}
	if f.DecimalSeparator == "" && f.ThousandsSeparator == "" {
		return text, true
	}
	whole, fraction, has := strings.Cut(text, f.decimalSeparator())
	if f.ThousandsSeparator != "" {
		groups := strings.Split(f.oneSeparator(whole), f.ThousandsSeparator)
		first := strings.TrimLeft(groups[0], "+-")
		for _, g := range groups[1:] {
			if len(g) != 3 || first == "" || len(first) > 3 {
				return "", false
			}
		}
		whole = strings.Join(groups, "")
	}
	if f.decimalSeparator() != "." && strings.Contains(whole+fraction, ".") {
		return "", false
	}
	if has {
		whole += "." + fraction
	}
	return whole, true
}

// Non-breaking blanks and apostrophes count as the separator.
func (f *Field) oneSeparator(whole string) string {
	alike := ""
	switch f.ThousandsSeparator {
	case " ", "\u00a0", "\u202f", "\u2009":
		alike = " \u00a0\u202f\u2009"
	case "'", "\u2019":
		alike = "'\u2019"
	}
	if !strings.ContainsAny(whole, alike) {
		return whole
	}
	for _, c := range alike {
		whole = strings.ReplaceAll(whole, string(c), f.ThousandsSeparator)
	}
	return whole
}

func (f *Field) decimalSeparator() string {
	if f.DecimalSeparator == "" {
		return "."
	}
	return f.DecimalSeparator
}

// Refuses settings of numbers only, and ambiguous ones.
func (f *Field) checkNumber() error {
	if f.Kind.IsList() {
		return nil
	}
	isNumber := f.Kind == DecimalKind || f.Kind == Float || f.Kind == Int
	separated := f.DecimalSeparator != "" || f.ThousandsSeparator != ""
	switch {
	case f.Scale != nil && f.Kind != DecimalKind:
		return fmt.Errorf("scale is for decimal, not for %s", f.Kind)
	case f.Scale != nil && (*f.Scale < 0 || *f.Scale > MaxScale):
		return fmt.Errorf("scale is %d (allowed: 0 to %d)", *f.Scale, MaxScale)
	case f.TrailingMinus && !isNumber:
		return fmt.Errorf("trailing_minus is for decimal, float and int, not for %s", f.Kind)
	case separated && !isNumber:
		return fmt.Errorf("decimal_separator and thousands_separator are for decimal, float and int, not for %s", f.Kind)
	case f.DecimalSeparator != "" && f.Kind == Int:
		return errors.New("decimal_separator is for decimal and float, not for int")
	case separated && f.decimalSeparator() == f.ThousandsSeparator:
		return fmt.Errorf("decimal_separator and thousands_separator are both %q", f.ThousandsSeparator)
	case strings.ContainsAny(f.DecimalSeparator+f.ThousandsSeparator, "0123456789+-eE"):
		return errors.New("a separator must not contain a digit, sign or exponent")
	}
	return nil
}
