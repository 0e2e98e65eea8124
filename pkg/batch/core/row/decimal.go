package row

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Decimal is exact (rule D10): a coefficient and a scale, the digits after the point. Compare with Cmp or
// Equal: == distinguishes 1.50 and 1.5. Zero is 0.
//
// A coefficient in an int64 costs no allocation.
type Decimal struct {
	digits string
	num    int64
	scale  uint16
}

// The limits of a decimal.
const (
	maxDigits = 1000 // of the coefficient
	MaxScale  = 1000
)

// NewDecimal is coefficient / 10^scale; scale 0 to MaxScale.
func NewDecimal(coefficient int64, scale int) (Decimal, error) {
	if scale < 0 || scale > MaxScale {
		return Decimal{}, fmt.Errorf("a decimal has 0 to %d digits after the point, not %d", MaxScale, scale)
	}
	return Decimal{num: coefficient, scale: uint16(scale)}, nil
}

// DecimalOf returns a whole number.
func DecimalOf(i int64) Decimal { return Decimal{num: i} }

// DecimalOfFloat takes x's shortest text: 0.1. NaN and infinities are errors.
func DecimalOfFloat(x float64) (Decimal, error) {
	if x-x != 0 {
		return Decimal{}, fmt.Errorf("%v is not a finite number", x)
	}
	return ParseDecimal(FloatText(x))
}

var errNoDecimal = errors.New("it is not a decimal number")

// ParseDecimal reads [+-]digits[.digits][e[+-]digits], up to maxDigits. 1.50 keeps its zero; an exponent moves
// the point.
func ParseDecimal(text string) (Decimal, error) {
	if d, ok := parseShort(text); ok {
		return d, nil
	}
	mantissa, exponent, err := cutExponent(text)
	if err != nil {
		return Decimal{}, err
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	sign := ""
	if whole != "" && (whole[0] == '-' || whole[0] == '+') {
		sign, whole = whole[:1], whole[1:]
	}
	if whole+fraction == "" || !allDigits(whole) || !allDigits(fraction) {
		return Decimal{}, errNoDecimal
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	scale := len(fraction) - exponent
	if digits == "" {
		return NewDecimal(0, min(max(scale, 0), MaxScale))
	}
	if len(digits)+max(-scale, 0) > maxDigits || scale > MaxScale {
		return Decimal{}, fmt.Errorf("a decimal has at most %d digits, and %d after the point", maxDigits, MaxScale)
	}
	digits += strings.Repeat("0", max(-scale, 0))
	return decimalOf(strings.TrimPrefix(sign, "+")+digits, max(scale, 0)), nil
}

// Without exponent, up to 18 digits.
func parseShort(text string) (Decimal, bool) {
	const maxShort = 18
	rest, negative := text, false
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		negative, rest = rest[0] == '-', rest[1:]
	}
	if rest == "" || rest == "." || len(rest) > maxShort {
		return Decimal{}, false
	}
	num, point := int64(0), -1
	for i := range len(rest) {
		switch c := rest[i]; {
		case '0' <= c && c <= '9':
			num = num*10 + int64(c-'0')
		case c == '.' && point < 0:
			point = i
		default:
			return Decimal{}, false
		}
	}
	scale := 0
	if point >= 0 {
		scale = len(rest) - point - 1
	}
	if negative {
		num = -num
	}
	return Decimal{num: num, scale: uint16(scale)}, true
}

func cutExponent(text string) (mantissa string, exponent int, err error) {
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return text, 0, nil
	}
	// Checked before anything grows by it.
	exponent, err = strconv.Atoi(text[at+1:])
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return "", 0, errNoDecimal
	case err != nil || exponent > maxDigits || exponent < -2*maxDigits:
		return "", 0, fmt.Errorf("a decimal has at most %d digits, and %d after the point", maxDigits, MaxScale)
	}
	return text[:at], exponent, nil
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

func decimalOf(digits string, scale int) Decimal {
	if num, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return Decimal{num: num, scale: uint16(scale)}
	}
	return Decimal{digits: digits, scale: uint16(scale)}
}

func decimalOfBig(coefficient *big.Int, scale int) (Decimal, error) {
	if coefficient.IsInt64() {
		return NewDecimal(coefficient.Int64(), scale)
	}
	const bitsOfDigits = 3322
	if coefficient.BitLen() > bitsOfDigits || scale > MaxScale || scale < 0 {
		return Decimal{}, fmt.Errorf("the result is too long for a decimal: at most %d digits, and %d after the point", maxDigits, MaxScale)
	}
	return Decimal{digits: coefficient.String(), scale: uint16(scale)}, nil
}

func (d Decimal) big() *big.Int {
	if d.digits == "" {
		return big.NewInt(d.num)
	}
	b, _ := new(big.Int).SetString(d.digits, 10)
	return b
}

// Scale is the digits after the point.
func (d Decimal) Scale() int { return int(d.scale) }

// Digits of the coefficient without leading zeros: 3 for 1.50.
func (d Decimal) Digits() int {
	if d.digits != "" {
		return len(strings.TrimPrefix(d.digits, "-"))
	}
	n := 1
	for rest := d.num / 10; rest != 0; rest /= 10 {
		n++
	}
	return n
}

// Sign returns -1, 0 or 1.
func (d Decimal) Sign() int {
	switch {
	case d.digits == "":
		return cmp.Compare(d.num, 0)
	case d.digits[0] == '-':
		return -1
	}
	return 1
}

// Cmp orders numbers regardless of scale.
func (d Decimal) Cmp(e Decimal) int {
	if a, b, ok := alignShort(d, e); ok {
		return cmp.Compare(a, b)
	}
	if d.Sign() != e.Sign() {
		return cmp.Compare(d.Sign(), e.Sign())
	}
	a, b, _ := align(d, e)
	return a.Cmp(b)
}

// Equal reports whether the numbers are: 1.50 equals 1.5.
func (d Decimal) Equal(e Decimal) bool { return d.Cmp(e) == 0 }

// Add, Sub and Mul are exact; a sum has the larger scale, a product both. Too long is an error.
func (d Decimal) Add(e Decimal) (Decimal, error) {
	if a, b, ok := alignShort(d, e); ok {
		if sum := a + b; (sum > a) == (b > 0) {
			return Decimal{num: sum, scale: max(d.scale, e.scale)}, nil
		}
	}
	a, b, scale := align(d, e)
	return decimalOfBig(a.Add(a, b), scale)
}

// Sub is d - e.
func (d Decimal) Sub(e Decimal) (Decimal, error) { return d.Add(e.Neg()) }

// Mul is d * e.
func (d Decimal) Mul(e Decimal) (Decimal, error) {
	scale := int(d.scale) + int(e.scale)
	if d.digits == "" && e.digits == "" {
		if product, ok := mulShort(d.num, e.num); ok {
			return NewDecimal(product, scale)
		}
	}
	a := d.big()
	return decimalOfBig(a.Mul(a, e.big()), scale)
}

// Neg is -d.
func (d Decimal) Neg() Decimal {
	if d.digits == "" && d.num != math.MinInt64 {
		return Decimal{num: -d.num, scale: d.scale}
	}
	b := d.big()
	return decimalOf(b.Neg(b).String(), int(d.scale))
}

// Abs returns d without its sign.
func (d Decimal) Abs() Decimal {
	if d.Sign() < 0 {
		return d.Neg()
	}
	return d
}

// Quo is d / e with scale digits, rounded; division by zero is an error.
func (d Decimal) Quo(e Decimal, scale int, mode Rounding) (Decimal, error) {
	if e.Sign() == 0 {
		return Decimal{}, errors.New("division by zero")
	}
	if scale < 0 || scale > MaxScale {
		return Decimal{}, fmt.Errorf("a decimal has 0 to %d digits after the point, not %d", MaxScale, scale)
	}
	a, b := d.big(), e.big()
	if shift := scale + int(e.scale) - int(d.scale); shift >= 0 {
		a.Mul(a, pow10(shift))
	} else {
		b.Mul(b, pow10(-shift))
	}
	return decimalOfBig(quotient(a, b, mode), scale)
}

// Round gives exactly scale digits: rounded or filled with zeros.
func (d Decimal) Round(scale int, mode Rounding) (Decimal, error) {
	if scale == int(d.scale) {
		return d, nil
	}
	if scale > int(d.scale) {
		if factor, ok := pow10Short(scale - int(d.scale)); ok && d.digits == "" {
			if num, ok := mulShort(d.num, factor); ok {
				return NewDecimal(num, scale)
			}
		}
	}
	return d.Quo(Decimal{num: 1}, scale, mode)
}

// Reduce drops trailing zeros. Decimals are Equal if and only if their Reduce is ==.
func (d Decimal) Reduce() Decimal {
	if d.digits != "" {
		cut := len(d.digits) - len(strings.TrimRight(d.digits, "0"))
		cut = min(cut, int(d.scale))
		return decimalOf(d.digits[:len(d.digits)-cut], int(d.scale)-cut)
	}
	for d.scale > 0 && d.num%10 == 0 {
		d.num, d.scale = d.num/10, d.scale-1
	}
	return d
}

// Int drops the fraction; fits and whole say if it lost.
func (d Decimal) Int() (i int64, fits, whole bool) {
	cut, err := d.Round(0, RoundDown)
	if err != nil || cut.digits != "" {
		return 0, false, false
	}
	return cut.num, true, cut.Equal(d)
}

// Float is the nearest; false beyond the largest.
func (d Decimal) Float() (float64, bool) {
	x, err := strconv.ParseFloat(d.String(), 64)
	return x, err == nil
}

// AppendText appends all digits of the scale, without exponent.
func (d Decimal) AppendText(dst []byte) []byte {
	if d.scale == 0 && d.digits == "" {
		return strconv.AppendInt(dst, d.num, 10)
	}
	digits := d.digits
	if digits == "" {
		var room [20]byte
		return d.appendPoint(dst, strconv.AppendInt(room[:0], d.num, 10))
	}
	return d.appendPoint(dst, []byte(digits))
}

func (d Decimal) appendPoint(dst, digits []byte) []byte {
	if digits[0] == '-' {
		dst, digits = append(dst, '-'), digits[1:]
	}
	scale := int(d.scale)
	if scale == 0 {
		return append(dst, digits...)
	}
	if whole := len(digits) - scale; whole > 0 {
		dst, digits = append(dst, digits[:whole]...), digits[whole:]
	} else {
		dst = append(dst, '0')
	}
	dst = append(dst, '.')
	for range scale - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}

// String returns the text of AppendText.
func (d Decimal) String() string { return string(d.AppendText(nil)) }

// MarshalText writes the text of AppendText.
func (d Decimal) MarshalText() ([]byte, error) { return d.AppendText(nil), nil }

// UnmarshalText reads the texts of ParseDecimal.
func (d *Decimal) UnmarshalText(text []byte) error {
	v, err := ParseDecimal(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", quoteShort(string(text)), err)
	}
	*d = v
	return nil
}

// MarshalJSON writes a JSON number.
func (d Decimal) MarshalJSON() ([]byte, error) { return d.AppendText(nil), nil }

// UnmarshalJSON reads a number, or a text of one.
func (d *Decimal) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	if n := len(text); n > 1 && text[0] == '"' && text[n-1] == '"' {
		text = text[1 : n-1]
	}
	return d.UnmarshalText(text)
}
