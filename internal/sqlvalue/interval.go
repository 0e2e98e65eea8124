package sqlvalue

import (
	"math/big"
	"regexp"
	"strings"
)

// amount is a number of an interval with the unit after it.
var amount = regexp.MustCompile(`(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[ \t]*([A-Za-z]*)`)

// KeepsInterval reports whether PostgreSQL keeps each number of an interval's text, to that many digits of a
// second (at most 6). It turns fractions of months and longer units into months and days, and drops the rest:
// 0.1 years are 1 month.
func KeepsInterval(text string, digits int) bool {
	day, clock, iso := text, "", strings.HasPrefix(strings.TrimSpace(text), "P")
	if iso {
		day, clock, _ = strings.Cut(text, "T")
	}
	return keepsAmounts(day, digits, iso, "month") && keepsAmounts(clock, digits, iso, "m")
}

// keepsAmounts is KeepsInterval for a part of the text; m is the meaning of M there in ISO 8601.
func keepsAmounts(text string, digits int, iso bool, m string) bool {
	for _, found := range amount.FindAllStringSubmatch(text, -1) {
		number, exponent, unit := found[1], found[2], strings.ToLower(found[3])
		if iso && unit == "m" {
			unit = m
		}
		size, step := stepOf(unit, digits)
		if exponent != "" || size == 0 && strings.Contains(number, ".") {
			return false
		}
		if size == 0 {
			continue
		}
		n, ok := new(big.Rat).SetString(strings.TrimSuffix(number, "."))
		if !ok || !n.Mul(n, big.NewRat(size, step)).IsInt() {
			return false
		}
	}
	return true
}

// stepOf returns the size of a unit, and the smallest part that is kept, in one measure: microseconds, or
// months; 0 means that the unit is unknown.
func stepOf(unit string, digits int) (size, step int64) {
	const micro, second, month = 1, 1_000_000, 1
	step = micro
	for range 6 - min(digits, 6) {
		step *= 10
	}
	switch unit {
	case "us", "usec", "usecs", "usecond", "useconds", "microsecond", "microseconds", "microsecon":
		return micro, step
	case "ms", "msec", "msecs", "msecond", "mseconds", "millisecond", "milliseconds", "millisecon":
		return second / 1000, step
	case "", "s", "sec", "secs", "second", "seconds":
		return second, step
	case "m", "min", "mins", "minute", "minutes":
		return 60 * second, step
	case "h", "hr", "hrs", "hour", "hours":
		return 3600 * second, step
	case "d", "day", "days":
		return 86400 * second, step
	case "w", "week", "weeks":
		return 7 * 86400 * second, step
	case "mon", "mons", "month", "months":
		return 30, 1 // days, which the server makes of a fraction
	case "y", "yr", "yrs", "year", "years":
		return 12 * month, month
	case "dec", "decs", "decade", "decades":
		return 120 * month, month
	case "c", "cent", "century", "centuries":
		return 1200 * month, month
	case "mil", "mils", "millennium", "millennia":
		return 12000 * month, month
	}
	return 0, 0
}
