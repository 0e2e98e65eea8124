package expression

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func textFunctions() []function {
	text := func(rule func(string) string) func(c *call) (*typed, error) {
		return func(c *call) (*typed, error) {
			return c.apply1(row.String, func(a row.Value) (row.Value, error) { return row.StringValue(rule(a.Str())), nil }), c.wantAll(row.String)
		}
	}
	return []function{
		{"lower", "lower(text)", 1, 1, text(strings.ToLower)},
		{"upper", "upper(text)", 1, 1, text(strings.ToUpper)},
		{"trim", "trim(text): without surrounding white space", 1, 1, text(strings.TrimSpace)},
		{"len", "len(x): the number of characters of a text, of bytes, or of elements of a list", 1, 1, length},
		{"replace", "replace(text, old, new): replaces every occurrence", 3, 3, func(c *call) (*typed, error) {
			if err := c.wantAll(row.String, row.String, row.String); err != nil {
				return nil, err
			}
			return c.apply3(row.String, func(a, old, by row.Value) (row.Value, error) {
				return row.StringValue(strings.ReplaceAll(a.Str(), old.Str(), by.Str())), nil
			}), nil
		}},
		{"substr", "substr(text, from, count): characters, from 0", 3, 3, func(c *call) (*typed, error) {
			if err := c.wantAll(row.String, row.Int, row.Int); err != nil {
				return nil, err
			}
			return c.apply3(row.String, substring), nil
		}},
	}
}

func length(c *call) (*typed, error) {
	if c.args[0].kind.IsList() {
		return c.apply1(row.Int, func(a row.Value) (row.Value, error) { return row.IntValue(int64(a.Len())), nil }), nil
	}
	if err := c.want(0, row.String, row.BytesKind); err != nil {
		return nil, err
	}
	count := func(a row.Value) int { return utf8.RuneCountInString(a.Str()) }
	if c.is(0, row.BytesKind) {
		count = func(a row.Value) int { return len(a.Bytes()) }
	}
	return c.apply1(row.Int, func(a row.Value) (row.Value, error) { return row.IntValue(int64(count(a))), nil }), nil
}

func substring(text, from, count row.Value) (row.Value, error) {
	if from.Int() < 0 || count.Int() < 0 {
		return row.Value{}, fmt.Errorf("substr from %d, %d characters: neither may be negative", from.Int(), count.Int())
	}
	rest := text.Str()
	skip := func(s string, n int64) int {
		at := 0
		for ; n > 0 && at < len(s); n-- {
			_, size := utf8.DecodeRuneInString(s[at:])
			at += size
		}
		return at
	}
	rest = rest[skip(rest, from.Int()):]
	return row.StringValue(rest[:skip(rest, count.Int())]), nil
}

func conversions() []function {
	return []function{
		{"string", "string(x): the text as in files and text columns; 1000000.0 is 1000000", 1, 1, toString},
		{"int", "int(x): the int in a text, or a float or decimal without its fraction", 1, 1, toInt},
		{"decimal", "decimal(x): exact, from a text, an int, or the shortest text of a float", 1, 1, toDecimal},
		{"uuid", "uuid(text): also in braces, after urn:uuid:, or without hyphens", 1, 1, toUUID},
		{"decode", "decode(text, 'hex'): the bytes of a text in hex, base64 or utf8", 2, 2, decodeText},
		{"encode", "encode(bytes, 'hex'): the text of bytes in hex, base64 or utf8; string(bytes) is base64", 2, 2, encodeBytes},
		{"float", "float(x): the nearest float to a text, an int or a decimal", 1, 1, toFloat},
	}
}

func toString(c *call) (*typed, error) {
	switch {
	case c.is(0, row.String):
		return c.args[0], nil
	case c.is(0, kindDuration):
		return c.apply1(row.String, func(a row.Value) (row.Value, error) {
			return row.StringValue(time.Duration(a.Int()).String()), nil
		}), nil
	}
	return c.apply1(row.String, func(a row.Value) (row.Value, error) { return row.StringValue(a.String()), nil }), nil
}

func toInt(c *call) (*typed, error) {
	if err := c.want(0, row.String, row.Int, row.Float, row.DecimalKind); err != nil || c.is(0, row.Int) {
		return c.args[0], err
	}
	if c.is(0, row.DecimalKind) {
		return c.apply1(row.Int, wholeOf), nil
	}
	if c.is(0, row.String) {
		return c.apply1(row.Int, func(a row.Value) (row.Value, error) {
			n, err := strconv.ParseInt(strings.TrimSpace(a.Str()), 10, 64)
			if err != nil {
				return row.Value{}, fmt.Errorf("%s is not an int", quote(a.Str()))
			}
			return row.IntValue(n), nil
		}), nil
	}
	return c.apply1(row.Int, func(a row.Value) (row.Value, error) {
		whole := math.Trunc(a.Float())
		if !(whole >= -(1<<63) && whole < 1<<63) { // NaN fits neither
			return row.Value{}, fmt.Errorf("%s does not fit an int", a)
		}
		return row.IntValue(int64(whole)), nil
	}), nil
}

func toFloat(c *call) (*typed, error) {
	if err := c.want(0, row.String, row.Int, row.Float, row.DecimalKind); err != nil || c.is(0, row.Float) {
		return c.args[0], err
	}
	if c.is(0, row.DecimalKind) {
		return c.apply1(row.Float, nearestFloat), nil
	}
	if c.is(0, row.Int) {
		return c.apply1(row.Float, func(a row.Value) (row.Value, error) { return row.FloatValue(float64(a.Int())), nil }), nil
	}
	return c.apply1(row.Float, func(a row.Value) (row.Value, error) {
		x, err := row.ParseFloat(strings.TrimSpace(a.Str()))
		if err != nil {
			return row.Value{}, fmt.Errorf("%s is not a float", quote(a.Str()))
		}
		return row.FloatValue(x), nil
	}), nil
}

func quote(text string) string {
	const maxLen = 60
	if len(text) > maxLen {
		text = strings.ToValidUTF8(text[:maxLen], "") + "…"
	}
	return strconv.Quote(text)
}
