package cli

import (
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// 90d, 2w, 36h, 15m.
func parseAge(flag, text string) (time.Duration, error) {
	if number, unit, ok := cutUnit(text); ok {
		n, err := strconv.ParseInt(number, 10, 32)
		if err == nil && n >= 0 && n <= 100_000 {
			return time.Duration(n) * unit, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, usagef("%s %s: a duration such as 90d, 2w, 36h or 15m is expected", flag, text)
	}
	return d, nil
}

func cutUnit(text string) (number string, unit time.Duration, ok bool) {
	if number, ok = strings.CutSuffix(text, "d"); ok {
		return number, day, true
	}
	number, ok = strings.CutSuffix(text, "w")
	return number, 7 * day, ok
}

func parseMoment(flag, text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02 15:04:05Z", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	age, err := parseAge(flag, text)
	if err != nil {
		return time.Time{}, usagef("%s %s: a date (2026-11-21), a time (2026-11-21T08:30:00Z, or 2026-11-21T08:30 in UTC) or how long ago (90d, 36h) is expected", flag, text)
	}
	return now.Add(-age), nil
}
