package row

import (
	"fmt"
	"time"
)

// LocalTime is the instant when the zone's clocks show wall's UTC reading: the first of two; an error if left
// out. nil is UTC.
func LocalTime(wall time.Time, zone *time.Location) (time.Time, error) {
	if zone == nil || zone == time.UTC {
		return wall.UTC(), nil
	}
	y, m, d := wall.Date()
	t := time.Date(y, m, d, wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), zone)
	if t.Hour() != wall.Hour() || t.Minute() != wall.Minute() {
		return time.Time{}, &gapError{wall: wall, zone: zone}
	}
	if start, _ := t.ZoneBounds(); !start.IsZero() {
		_, before := start.Add(-time.Nanosecond).Zone()
		if first := wall.Add(-time.Duration(before) * time.Second); first.Before(start) {
			return first, nil
		}
	}
	return t, nil
}

// gapError is of a time that a clock change leaves out.
type gapError struct {
	wall time.Time
	zone *time.Location
}

func (e *gapError) Error() string {
	return fmt.Sprintf("%s does not exist in %s: the clock skips it", e.wall.Format("2006-01-02 15:04:05"), e.zone)
}

// Begins is the day's first instant; nil is UTC.
func (d Date) Begins(zone *time.Location) time.Time {
	t, err := LocalTime(d.Time(), zone)
	if err == nil {
		return t.UTC()
	}
	// Midnight is left out: the day begins at the change.
	noon := time.Date(d.Time().Year(), d.Time().Month(), d.Time().Day(), 12, 0, 0, 0, zone)
	start, _ := noon.ZoneBounds()
	return start.UTC()
}
