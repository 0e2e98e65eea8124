package row

import (
	"fmt"
	"math"
	"strconv"
)

// appendFloat appends the canonical text of x (rule D7): the shortest decimal that reads back as x,
// without an exponent from 1e-17 to below 1e21 (where encoding/json begins to use exponents too), and 0
// for a negative zero. It makes every float text that the framework writes.
func appendFloat(dst []byte, x float64) []byte {
	format := byte('e')
	switch abs := math.Abs(x); {
	case x == 0:
		return append(dst, '0')
	case minPlain <= abs && abs < maxPlain:
		format = 'f'
	}
	return strconv.AppendFloat(dst, x, format, -1, 64)
}

// FloatText returns the canonical text of x (rule D7).
func FloatText(x float64) string { return string(appendFloat(nil, x)) }

// A float in this range is written without an exponent.
const (
	minPlain = 1e-17
	maxPlain = 1e21
)

// Finite reports a float that no target accepts, as it has no canonical text: NaN and the infinities.
func (v Value) Finite() error {
	if v.kind != Float {
		return nil
	}
	if x := v.Float(); x-x != 0 {
		return fmt.Errorf("%v is not a finite number", x)
	}
	return nil
}

// Real returns the float64 of the shortest text that reads back as x: 0.1 for a float32 0.1, not
// 0.10000000149011612. It converts back to the same float32.
func Real(x float32) float64 {
	wide := float64(x)
	if math.Abs(wide) < 1<<24 && wide == math.Trunc(wide) || wide-wide != 0 {
		return wide // includes NaN and infinities
	}
	text := strconv.AppendFloat(make([]byte, 0, 24), wide, 'g', -1, 32)
	if near, err := strconv.ParseFloat(string(text), 64); err == nil && float32(near) == x {
		return near
	}
	return wide
}

// IntOf returns x as an int, and whether x is a whole number that fits in an int.
func IntOf(x float64) (int64, bool) {
	if !(x >= -1<<63 && x < 1<<63) || x != math.Trunc(x) {
		return 0, false
	}
	return int64(x), true
}

// FloatOf returns i as a float, and whether the float is exactly i: always within 2^53, beyond it for
// multiples of a power of two.
func FloatOf(i int64) (float64, bool) {
	x := float64(i)
	back, ok := IntOf(x)
	return x, ok && back == i
}

// CompareIntFloat compares an int with a float by their values, without rounding
// the int. A NaN is less than every number.
func CompareIntFloat(i int64, x float64) int {
	switch {
	case x >= 1<<63:
		return -1
	case !(x >= -1<<63): // includes NaN
		return 1
	}
	whole := math.Floor(x)
	switch n := int64(whole); {
	case i < n:
		return -1
	case i > n:
		return 1
	case x > whole:
		return -1
	}
	return 0
}
