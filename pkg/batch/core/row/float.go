package row

import (
	"math"
	"strconv"
)

// The canonical text (rule D7): the shortest that reads back, without exponent from 1e-17 to below 1e21 (as
// encoding/json), 0 for -0. Every float text is made here.
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

// Written without an exponent.
const (
	minPlain = 1e-17
	maxPlain = 1e21
)

// Real is the float64 of x's shortest text: 0.1, not 0.10000000149011612. It converts back.
func Real(x float32) float64 {
	wide := float64(x)
	if math.Abs(wide) < 1<<24 && wide == math.Trunc(wide) || wide-wide != 0 {
		return wide
	}
	text := strconv.AppendFloat(make([]byte, 0, 24), wide, 'g', -1, 32)
	if near, err := strconv.ParseFloat(string(text), 64); err == nil && float32(near) == x {
		return near
	}
	return wide
}

// IntOf returns false if not whole or too large.
func IntOf(x float64) (int64, bool) {
	if !(x >= -1<<63 && x < 1<<63) || x != math.Trunc(x) {
		return 0, false
	}
	return int64(x), true
}

// FloatOf returns true if exact, always within 2^53.
func FloatOf(i int64) (float64, bool) {
	x := float64(i)
	back, ok := IntOf(x)
	return x, ok && back == i
}

// CompareIntFloat does not round the int. NaN is least.
func CompareIntFloat(i int64, x float64) int {
	switch {
	case x >= 1<<63:
		return -1
	case !(x >= -1<<63):
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
