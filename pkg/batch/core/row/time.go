package row

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// epochUnit returns the unit, in microseconds, of a format that counts from 1970-01-01 UTC, or 0.
func epochUnit(format string) int64 {
	switch format {
	case "epoch":
		return 1_000_000
	case "epoch_ms":
		return 1_000
	case "epoch_us":
		return 1
	}
	return 0
}

// Counts reports whether the text form of the field's dates or times is a number: the seconds,
// milliseconds or microseconds since 1970-01-01 UTC.
func (f *Field) Counts() bool { return f.epoch != 0 }

// Earliest and latest microsecond of the years 1 to 9999.
const (
	firstMicro = -62135596800_000_000
	lastMicro  = 253402300799_999_999
)

// errFiner refuses digits that would be cut off.
var errFiner = errors.New("it is finer than a microsecond")

// isFiner reports whether the fraction of a second has a nonzero digit after the sixth.
func isFiner(text string) bool {
	at := strings.LastIndexAny(text, ".,")
	if at < 0 {
		return false
	}
	for i, c := range text[at+1:] {
		if c < '0' || c > '9' {
			break
		}
		if i >= 6 && c != '0' {
			return true
		}
	}
	return false
}

// parseEpoch reads a number of units. cut means that nonzero digits finer than a microsecond are cut
// off.
func parseEpoch(text string, unit int64) (t time.Time, cut bool, err error) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.Trim(fraction, "0123456789") != "" || strings.HasSuffix(text, ".") {
		return time.Time{}, false, fmt.Errorf("it is not a number of units since 1970-01-01")
	}
	if n > lastMicro/unit || n < firstMicro/unit {
		return time.Time{}, false, fmt.Errorf("it is outside the years 1 to 9999")
	}
	micros := n * unit
	part := int64(0)
	for i, scale := 0, unit/10; i < len(fraction); i, scale = i+1, scale/10 {
		part += int64(fraction[i]-'0') * scale
		cut = cut || scale == 0 && fraction[i] != '0'
	}
	if strings.HasPrefix(whole, "-") {
		part = -part
	}
	return time.UnixMicro(micros + part).UTC(), cut, nil
}

// appendEpoch writes a number of units, with a fraction if needed.
func appendEpoch(dst []byte, t time.Time, unit int64) []byte {
	micros := t.UnixMicro()
	if micros < 0 {
		dst, micros = append(dst, '-'), -micros
	}
	dst = strconv.AppendInt(dst, micros/unit, 10)
	if rest := micros % unit; rest != 0 {
		digits := strconv.FormatInt(unit+rest, 10)[1:]
		dst = append(append(dst, '.'), strings.TrimRight(digits, "0")...)
	}
	return dst
}

// parseDate reads a date in the field's format.
func (f *Field) parseDate(text string) (Date, error) {
	if f.epoch != 0 {
		t, _, err := parseEpoch(text, f.epoch)
		return DateOf(t.In(f.zone())), err
	}
	layout := f.layoutOr(time.DateOnly)
	if layout == time.DateOnly {
		if d, ok := parseISODate(text); ok {
			return d, nil
		}
	}
	t, err := time.Parse(layout, text)
	return DateOf(t), err
}

// parseWith reads a time by a layout: one without an offset is in the field's zone.
func (f *Field) parseWith(layout, text string) (time.Time, error) {
	t, err := time.Parse(layout, text)
	if err != nil || f.Zone == nil || strings.Contains(layout, "07") {
		return t, err
	}
	return localTime(t, f.Zone)
}

func (f *Field) zone() *time.Location {
	if f.Zone == nil {
		return time.UTC
	}
	return f.Zone
}

// gapError is a time of day that a clock change leaves out.
type gapError struct {
	wall time.Time
	zone *time.Location
}

func (e *gapError) Error() string {
	return fmt.Sprintf("%s does not exist in %s: the clock skips it", e.wall.Format("2006-01-02 15:04:05"), e.zone)
}

// ParseTimestamp reads a timestamp like a field of the zone (rule D5): a text without an offset is in
// the zone, the first of two possible instants; a time that a clock change leaves out is an error. nil
// is UTC. Digits finer than a microsecond are cut off.
func ParseTimestamp(text string, zone *time.Location) (time.Time, error) {
	if zone == time.UTC {
		zone = nil
	}
	f := Field{Kind: Timestamp, Zone: zone}
	t, err := f.parseTime(text)
	if err != nil && !errors.Is(err, errFiner) {
		if why := f.whyNoTime(err); strings.HasPrefix(why, "expected ") {
			return time.Time{}, fmt.Errorf("%q is not a timestamp (such as 2026-11-20T08:30:00Z)", text)
		}
		return time.Time{}, err
	}
	return t.UTC().Truncate(time.Microsecond), nil
}

// LocalTime returns the instant at which the clocks of the zone show wall's UTC reading: the first of
// two; an error if a clock change leaves it out. nil is UTC.
func LocalTime(wall time.Time, zone *time.Location) (time.Time, error) {
	if zone == nil || zone == time.UTC {
		return wall.UTC(), nil
	}
	return localTime(wall, zone)
}

// Begins returns the first instant of the day in the zone; nil is UTC.
func (d Date) Begins(zone *time.Location) time.Time {
	t, err := LocalTime(d.Time(), zone)
	if err == nil {
		return t.UTC()
	}
	// Midnight is left out: the day begins when the clock moves forward.
	noon := time.Date(d.Time().Year(), d.Time().Month(), d.Time().Day(), 12, 0, 0, 0, zone)
	start, _ := noon.ZoneBounds()
	return start.UTC()
}

// localTime returns the instant at which the clocks of the zone show wall's UTC reading; the first if
// they show it twice.
func localTime(wall time.Time, zone *time.Location) (time.Time, error) {
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

// appendTime appends a date or timestamp in the field's format.
func (f *Field) appendTime(dst []byte, v Value) []byte {
	t := v.Time().In(f.zone())
	if v.kind == DateKind {
		t = v.Date().Time()
		if f.epoch != 0 {
			t = v.Date().Begins(f.Zone)
		}
	}
	if f.epoch != 0 {
		return appendEpoch(dst, t, f.epoch)
	}
	return t.AppendFormat(dst, f.layout)
}

// plainText refuses format text that Go's layouts would read as a part of a time.
func plainText(format, text string) error {
	one, other := time.Date(2034, 5, 17, 20, 18, 49, 0, time.UTC), time.Date(1978, 11, 9, 7, 33, 12, 0, time.FixedZone("X", 3600))
	if one.Format(text) != text || other.Format(text) != text || strings.ContainsAny(text, "0123456789_") {
		return fmt.Errorf("format %q: %q is not allowed in a format", format, text)
	}
	return nil
}
