package humanize

import (
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// ParseAge reads a duration as people write it, also in days and weeks: 90d, 2w, 36h, 15m.
func ParseAge(text string) (age time.Duration, is bool) {
	if number, unit, found := cutUnit(text); found {
		n, err := strconv.ParseInt(number, 10, 32)
		if err == nil && n >= 0 && n <= 100_000 {
			return time.Duration(n) * unit, true
		}
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}

func cutUnit(text string) (number string, unit time.Duration, found bool) {
	if number, found = strings.CutSuffix(text, "d"); found {
		return number, day, true
	}
	number, found = strings.CutSuffix(text, "w")
	return number, 7 * day, found
}

// ParseMoment reads a time with its offset, a date or a time in a zone, or how long it is before now.
func ParseMoment(text string, zone *time.Location, now time.Time) (moment time.Time, is bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04:05", time.DateTime} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t.UTC(), true
		}
	}
	age, is := ParseAge(text)
	if !is {
		return time.Time{}, false
	}
	return now.Add(-age), true
}
