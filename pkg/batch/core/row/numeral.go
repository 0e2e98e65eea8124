package row

import (
	"fmt"
	"strconv"
	"strings"
)

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
