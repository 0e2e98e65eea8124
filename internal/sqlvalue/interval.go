package sqlvalue

import (
	"math/big"
	"regexp"
	"strings"
)

var amount = regexp.MustCompile(`(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[ \t]*([A-Za-z]*)`)

// KeepsInterval reports whether PostgreSQL keeps an interval's numbers: 0.1 years are 1 month.
func KeepsInterval(text string, digits int) bool {
	day, clock, iso := text, "", strings.HasPrefix(strings.TrimSpace(text), "P")
	if iso {
		day, clock, _ = strings.Cut(text, "T")
	}
	return keepsAmounts(day, digits, iso, "month") && keepsAmounts(clock, digits, iso, "m")
}

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
