package item

import (
	"bytes"
	"strconv"
)

// plainNumbers gives the numbers of a document of encoding/json the text of rule D7: 0.0000001 for
// 1e-7, 0 for -0. It rewrites a number by moving its point, so no digit is lost, whatever its length.
// It returns doc itself if nothing changes.
func plainNumbers(doc []byte) []byte {
	if bytes.IndexByte(doc, '-') < 0 && bytes.IndexByte(doc, '+') < 0 {
		return doc // encoding/json signs every exponent
	}
	var out []byte
	kept := 0 // doc[:kept] is in out
	for i := 0; i < len(doc); {
		switch c := doc[i]; {
		case c == '"':
			i = endOfString(doc, i)
		case c == '-' || isDigit(c):
			end := i + 1
			for end < len(doc) && (isDigit(doc[end]) || bytes.IndexByte([]byte("+-.eE"), doc[end]) >= 0) {
				end++
			}
			if text, changed := plainNumber(doc[i:end]); changed {
				out = append(append(out, doc[kept:i]...), text...)
				kept = end
			}
			i = end
		default:
			i++
		}
	}
	if kept == 0 {
		return doc
	}
	return append(out, doc[kept:]...)
}

// endOfString returns the index after the string that begins at from.
func endOfString(doc []byte, from int) int {
	for i := from + 1; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(doc)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// Exponents in this range are written out; row.appendFloat has the same bounds.
const (
	minPlainExponent = -17
	maxPlainExponent = 20
)

// plainNumber returns a JSON number without an exponent in range, and 0 for a negative zero.
func plainNumber(number []byte) (text []byte, changed bool) {
	mantissa, exponent := number, 0
	if e := bytes.IndexAny(number, "eE"); e >= 0 {
		n, err := strconv.Atoi(string(number[e+1:]))
		if err != nil {
			return number, false
		}
		mantissa, exponent = number[:e], n
	} else if number[0] != '-' || number[1] != '0' {
		return number, false
	}
	sign := mantissa[:0]
	if mantissa[0] == '-' {
		sign, mantissa = mantissa[:1], mantissa[1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	digits := append(append([]byte(nil), whole...), fraction...)
	point := len(whole) + exponent // number of digits before the point
	zeros := len(digits) - len(bytes.TrimLeft(digits, "0"))
	digits, point = bytes.TrimRight(digits[zeros:], "0"), point-zeros
	switch {
	case len(digits) == 0:
		return []byte("0"), true
	case len(mantissa) == len(number)-len(sign):
		return number, false // without an exponent, and not zero
	case point-1 < minPlainExponent || point-1 > maxPlainExponent:
		return number, false
	}
	text = append(text, sign...)
	switch {
	case point <= 0:
		text = append(append(append(text, "0."...), bytes.Repeat([]byte("0"), -point)...), digits...)
	case point >= len(digits):
		text = append(append(text, digits...), bytes.Repeat([]byte("0"), point-len(digits))...)
	default:
		text = append(append(append(text, digits[:point]...), '.'), digits[point:]...)
	}
	return text, true
}
