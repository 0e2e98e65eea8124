package cli

import (
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
)

const day = 24 * time.Hour

// 90d, 2w, 36h, 15m.
func parseAge(flag, text string) (time.Duration, error) {
	if d, is := humanize.ParseAge(text); is {
		return d, nil
	}
	return 0, usagef("%s %s: a duration such as 90d, 2w, 36h or 15m is expected", flag, text)
}

func parseMoment(flag, text string, now time.Time) (time.Time, error) {
	if t, is := humanize.ParseMoment(text, time.UTC, now); is {
		return t, nil
	}
	return time.Time{}, usagef("%s %s: a date (2026-11-21), a time (2026-11-21T08:30:00Z, or 2026-11-21T08:30 in UTC) or how long ago (90d, 36h) is expected", flag, text)
}
