package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // containers often have no time zone database

	"github.com/netresearch/go-cron"
)

// A 29 February on a given weekday comes after 40 years at the latest.
const searchYears = 60

// Cron is a cron expression in a time zone. It is immutable and safe for
// concurrent use.
type Cron struct {
	text     string
	zone     *time.Location
	fields   *cron.SpecSchedule
	wildcard bool
	days     *businessDays // nil means all days
}

// ErrNever means that no date matches, such as 30 February.
var ErrNever = errors.New("it never occurs")

// Parse reads five fields (minute, hour, day of month, month, day of week), or
// @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly. Days may
// be L, LW, L-3 and 15W, weekdays FRI#3 and FRI#L. If both days are restricted
// one must match; if one begins with *, both, as in Vixie cron. It may return
// ErrNever.
func Parse(expression string, zone *time.Location) (*Cron, error) {
	fields, err := fieldsOf(expression)
	if err != nil {
		return nil, err
	}
	options := cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Extended
	if !isStar(fields[2]) && !isStar(fields[4]) {
		options |= cron.DowOrDom
	}
	parser, err := cron.TryNewParser(options)
	if err != nil {
		return nil, fmt.Errorf("cron expression %q: %w", expression, err)
	}
	parsed, err := parser.WithMaxSearchYears(searchYears).Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, fmt.Errorf("cron expression %q: %w", expression, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("cron expression %q has no fields", expression)
	}
	// Wall clocks kept as UTC: this package, not the library, decides how a
	// clock change affects them.
	spec.Location = time.UTC
	c := &Cron{text: strings.TrimSpace(expression), zone: zone, fields: spec, wildcard: isStar(fields[0]) || isStar(fields[1])}
	if c.nextWall(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("cron expression %q: no date has this day and month: %w", expression, ErrNever)
	}
	return c, nil
}

// ParseIn is Parse with the name of a time zone.
func ParseIn(expression, zone string) (*Cron, error) {
	z, err := LoadZone(zone)
	if err != nil {
		return nil, err
	}
	return Parse(expression, z)
}

// Vixie cron treats it specially.
func isStar(field string) bool { return strings.HasPrefix(field, "*") || field == "?" }

func fieldsOf(expression string) ([]string, error) {
	text := strings.TrimSpace(expression)
	switch {
	case text == "":
		return nil, errors.New("the cron expression is empty")
	case strings.HasPrefix(text, "TZ="), strings.HasPrefix(text, "CRON_TZ="):
		return nil, fmt.Errorf("cron expression %q: the time zone has its own key, timezone", expression)
	case strings.HasPrefix(text, "@"):
		short, known := map[string]string{
			"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
			"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
		}[strings.ToLower(text)]
		if !known {
			return nil, fmt.Errorf("cron expression %q: allowed are @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, or five fields", expression)
		}
		text = short
	}
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return nil, fmt.Errorf("cron expression %q has %d fields, but needs five: minute, hour, day of month, month, day of week", expression, len(fields))
	}
	return fields, nil
}

// LoadZone returns an IANA zone; "" is UTC. "Local" is refused: it differs
// between machines.
func LoadZone(name string) (*time.Location, error) {
	if strings.EqualFold(name, "local") {
		return nil, errors.New("time zone Local differs between machines; name one, such as Europe/Berlin")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("there is no time zone %q; names are those of the IANA database, such as UTC or Europe/Berlin", name)
	}
	return zone, nil
}

// String returns the expression as written.
func (c *Cron) String() string { return c.text }

// Zone returns the time zone of the expression.
func (c *Cron) Zone() *time.Location { return c.zone }

// Wildcard reports whether minute or hour begins with *, a frequency rather
// than a time of day: see All.
func (c *Cron) Wildcard() bool { return c.wildcard }

func (c *Cron) nextWall(w time.Time) time.Time {
	if c.days != nil {
		return c.days.next(c.fields.Next, w)
	}
	return c.fields.Next(w)
}
