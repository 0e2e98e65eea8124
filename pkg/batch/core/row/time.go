package row

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseTimestamp (rule D5): without offset in zone (nil is UTC), the first of two instants; a time left out is
// an error. Finer digits are cut off.
func ParseTimestamp(text string, zone *time.Location) (time.Time, error) {
	if zone == time.UTC {
		zone = nil
	}
	t, err := times{zone: zone}.parse(text)
	var gap *gapError
	switch {
	case err == nil || errors.Is(err, errFiner):
		return t.UTC().Truncate(time.Microsecond), nil
	case errors.As(err, &gap):
		return time.Time{}, err
	}
	return time.Time{}, fmt.Errorf("%q is not a timestamp (such as 2026-11-20T08:30:00Z)", text)
}

type times struct {
	layout string         // Go's; empty means ISO 8601
	epoch  int64          // microseconds of a unit if counted, else 0
	zone   *time.Location // nil means UTC
}

func (f times) parse(text string) (time.Time, error) {
	if f.epoch != 0 {
		t, cut, err := parseEpoch(text, f.epoch)
		if err == nil && cut {
			err = errFiner
		}
		return t, err
	}
	if f.layout != "" {
		t, err := f.parseWith(f.layout, text)
		if err == nil && t.Nanosecond()%1000 != 0 {
			err = errFiner
		}
		return t, err
	}
	if micros, hasZone, ok := parseISOTime(text); ok && (hasZone || f.zone == nil) {
		return time.UnixMicro(micros).UTC(), nil
	}
	var err error
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999Z07"} {
		var t time.Time
		var gap *gapError
		if t, err = f.parseWith(layout, text); err == nil && isFiner(text) {
			return t, errFiner
		} else if err == nil || errors.As(err, &gap) {
			return t, err
		}
	}
	return time.Time{}, err
}

func (f times) parseDate(text string) (Date, error) {
	if f.epoch != 0 {
		t, _, err := parseEpoch(text, f.epoch)
		return DateOf(t.In(cmp.Or(f.zone, time.UTC))), err
	}
	layout := cmp.Or(f.layout, time.DateOnly)
	if layout == time.DateOnly {
		if d, ok := parseISODate(text); ok {
			return d, nil
		}
	}
	t, err := time.Parse(layout, text)
	return DateOf(t), err
}

// Without an offset in the field's zone.
func (f times) parseWith(layout, text string) (time.Time, error) {
	t, err := time.Parse(layout, text)
	if err != nil || strings.Contains(layout, "07") {
		return t, err
	}
	return LocalTime(t, f.zone)
}

func (f times) append(dst []byte, v Value) []byte {
	t := v.Time().In(cmp.Or(f.zone, time.UTC))
	if v.kind == DateKind {
		t = v.Date().Time()
		if f.epoch != 0 {
			t = v.Date().Begins(f.zone)
		}
	}
	if f.epoch != 0 {
		return appendEpoch(dst, t, f.epoch)
	}
	return t.AppendFormat(dst, f.layout)
}

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

// Earliest and latest microsecond of the years 1 to 9999.
const (
	firstMicro = -62135596800_000_000
	lastMicro  = 253402300799_999_999
)

var errFiner = errors.New("it is finer than a microsecond")

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

// cut: nonzero digits finer than a microsecond.
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

// A clock change leaves the time out.
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
