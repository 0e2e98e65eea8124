// Package calendar decides which days are business days.
//
// It imports core/row and the standard library.
package calendar

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Calendar is an immutable set of business days, safe for concurrent use.
type Calendar struct {
	name     string
	weekend  [7]bool // by time.Weekday
	holidays map[row.Date]bool
	yearly   func(year int) []row.Date
	until    row.Date
}

// Config describes a calendar.
type Config struct {
	Name string
	// Base is a calendar that adds its weekend and holidays; nil means none.
	Base *Calendar
	// Weekend are the weekdays that are not business days; nil means Base's, or Saturday and Sunday.
	Weekend  []time.Weekday
	Holidays []row.Date
	// Until is the last day with known holidays: a query beyond it is an error. 0 means Base's, or
	// none.
	Until row.Date
}

// New makes a calendar; one without a business day in a week is an error.
func New(c Config) (*Calendar, error) {
	made := &Calendar{name: c.Name, holidays: map[row.Date]bool{}, until: c.Until}
	if c.Base != nil {
		made.weekend, made.yearly = c.Base.weekend, c.Base.yearly
		for day := range c.Base.holidays {
			made.holidays[day] = true
		}
		if made.until == 0 {
			made.until = c.Base.until
		}
	}
	switch {
	case c.Weekend != nil:
		made.weekend = [7]bool{}
		for _, day := range c.Weekend {
			made.weekend[day] = true
		}
	case c.Base == nil:
		made.weekend[time.Saturday], made.weekend[time.Sunday] = true, true
	}
	for _, day := range c.Holidays {
		made.holidays[day] = true
	}
	if !slices.Contains(made.weekend[:], false) {
		return nil, fmt.Errorf("the calendar %s has no business day: its weekend has seven days", c.Name)
	}
	return made, nil
}

// Name returns the calendar's name in expressions and schedules.
func (c *Calendar) Name() string { return c.name }

// IsBusinessDay reports whether the day is a business day.
func (c *Calendar) IsBusinessDay(day row.Date) (bool, error) {
	if c.until != 0 && day > c.until {
		return false, fmt.Errorf("the calendar %s has holidays until %s, so %s is unknown", c.name, c.until, day)
	}
	t := day.Time()
	if c.weekend[t.Weekday()] || c.holidays[day] {
		return false, nil
	}
	return c.yearly == nil || !slices.Contains(c.yearly(t.Year()), day), nil
}

const (
	// maxSteps is the maximum number of business days for Add.
	maxSteps = 100_000
	// maxClosed is the maximum number of closed days in a row.
	maxClosed = 366
)

// Add returns business day n after the day, or -n before it; with 0 the day itself or the next one.
func (c *Calendar) Add(day row.Date, n int64) (row.Date, error) {
	if n > maxSteps || n < -maxSteps {
		return 0, fmt.Errorf("%d business days are more than %d", n, maxSteps)
	}
	step := row.Date(1)
	if n < 0 {
		step, n = -1, -n
	}
	left, closed := n, 0
	if n == 0 {
		day, left = day-1, 1
	}
	for left > 0 {
		day += step
		open, err := c.IsBusinessDay(day)
		switch {
		case err != nil:
			return 0, err
		case open:
			left, closed = left-1, 0
		case closed == maxClosed:
			return 0, fmt.Errorf("the calendar %s has no business day for a year before or after %s", c.name, day)
		default:
			closed++
		}
	}
	return day, nil
}

// Stock returns the built-in calendars, by name: TARGET, the payment system of the euro area.
func Stock() map[string]*Calendar {
	target := &Calendar{name: targetName, yearly: target}
	target.weekend[time.Saturday], target.weekend[time.Sunday] = true, true
	return map[string]*Calendar{targetName: target}
}

func target(year int) []row.Date {
	easter := Easter(year)
	return []row.Date{
		row.NewDate(year, time.January, 1), easter.AddDays(-2), easter.AddDays(1), row.NewDate(year, time.May, 1),
		row.NewDate(year, time.December, 25), row.NewDate(year, time.December, 26),
	}
}

// Easter returns Easter Sunday of a year in the Gregorian calendar.
func Easter(year int) row.Date { // after Meeus, Jones and Butcher
	a, b, c := year%19, year/100, year%100
	h := (19*a + b - b/4 - (b-(b+8)/25+1)/3 + 15) % 30
	l := (32 + 2*(b%4) + 2*(c/4) - h - c%4) % 7
	m := (a + 11*h + 22*l) / 451
	n := h + l - 7*m + 114
	return row.NewDate(year, time.Month(n/31), n%31+1)
}

// Days is a calendar as plain data, for storage.
type Days struct {
	Name string `json:"name"`
	// Yearly is the calendar of [Stock] that provides the holidays by rule; empty means none.
	Yearly   string   `json:"yearly,omitempty"`
	Weekend  []string `json:"weekend"`
	Holidays []string `json:"holidays,omitempty"`
	Until    string   `json:"until,omitempty"`
}

// Days returns the calendar as plain data.
func (c *Calendar) Days() Days {
	d := Days{Name: c.name, Weekend: []string{}}
	if c.yearly != nil {
		d.Yearly = targetName
	}
	for day, closed := range c.weekend {
		if closed {
			d.Weekend = append(d.Weekend, strings.ToUpper(time.Weekday(day).String()[:3]))
		}
	}
	for _, day := range slices.Sorted(maps.Keys(c.holidays)) {
		d.Holidays = append(d.Holidays, day.String())
	}
	if c.until != 0 {
		d.Until = c.until.String()
	}
	return d
}

// Calendar returns the calendar of the data.
func (d Days) Calendar() (*Calendar, error) {
	c := Config{Name: d.Name, Weekend: []time.Weekday{}}
	if d.Yearly != "" {
		if c.Base = Stock()[d.Yearly]; c.Base == nil {
			return nil, fmt.Errorf("calendar %s: there is no calendar %s", d.Name, d.Yearly)
		}
	}
	for _, name := range d.Weekend {
		day, ok := Weekday(name)
		if !ok {
			return nil, fmt.Errorf("calendar %s: %q is not a day of the week", d.Name, name)
		}
		c.Weekend = append(c.Weekend, day)
	}
	for _, text := range d.Holidays {
		day, err := row.ParseDate(text)
		if err != nil {
			return nil, fmt.Errorf("calendar %s: %w", d.Name, err)
		}
		c.Holidays = append(c.Holidays, day)
	}
	if d.Until != "" {
		day, err := row.ParseDate(d.Until)
		if err != nil {
			return nil, fmt.Errorf("calendar %s: %w", d.Name, err)
		}
		c.Until = day
	}
	return New(c)
}

const targetName = "TARGET"

// Weekday reads MON, Monday, in any case of letters.
func Weekday(name string) (time.Weekday, bool) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if full := day.String(); strings.EqualFold(name, full) || strings.EqualFold(name, full[:3]) {
			return day, true
		}
	}
	return 0, false
}
