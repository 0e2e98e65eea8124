package expression

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func calendarFunctions() []function {
	part := func(rule func(time.Time) int) func(c *call) (*typed, error) {
		return func(c *call) (*typed, error) {
			return datePart(c, func(d row.Date) int { return rule(d.Time()) })
		}
	}
	clock := func(rule func(time.Time) int) func(c *call) (*typed, error) {
		return func(c *call) (*typed, error) {
			return c.apply1(row.Int, func(a row.Value) (row.Value, error) { return row.IntValue(int64(rule(c.local(a)))), nil }), c.wantAll(row.Timestamp)
		}
	}
	return []function{
		{"weekday", "weekday(date or timestamp): 1 for Monday to 7 for Sunday", 1, 1, part(isoWeekday)},
		{"week", "week(date or timestamp): the ISO 8601 week, 1 to 53", 1, 1, part(func(t time.Time) int { _, w := t.ISOWeek(); return w })},
		{"quarter", "quarter(date or timestamp): 1 to 4", 1, 1, part(func(t time.Time) int { return (int(t.Month()) + 2) / 3 })},
		{"hour", "hour(timestamp): 0 to 23, in the job's timezone", 1, 1, clock(time.Time.Hour)},
		{"minute", "minute(timestamp): 0 to 59", 1, 1, clock(time.Time.Minute)},
		{"add_months", "add_months(date or timestamp, n): a day beyond the end of the month becomes its last day; days are added with +", 2, 2, addMonths},
		{"months_between", "months_between(a, b): the whole months from date a to date b; b - a gives the days", 2, 2, monthsBetween},
		{"truncate", "truncate(date or timestamp, 'month'): the start of its year, quarter, month, week or day, or of a timestamp's hour or minute, in the job's timezone", 2, 2, truncate},
		{"seconds", "seconds(duration): a float, such as seconds(b - a) of two timestamps", 1, 1, func(c *call) (*typed, error) {
			return c.apply1(row.Float, func(a row.Value) (row.Value, error) {
				return row.FloatValue(time.Duration(a.Int()).Seconds()), nil
			}), c.wantAll(kindDuration)
		}},
	}
}

func isoWeekday(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }

func addMonths(c *call) (*typed, error) {
	if err := c.want(0, row.DateKind, row.Timestamp); err != nil {
		return nil, err
	}
	if err := c.want(1, row.Int); err != nil {
		return nil, err
	}
	kind := c.args[0].kind
	return c.apply2(kind, func(a, months row.Value) (row.Value, error) {
		const most = 12 * 10_000
		if n := months.Int(); n > most || n < -most {
			return row.Value{}, fmt.Errorf("%s plus %d months is outside the years 1 to 9999", a, n)
		}
		day := a
		if kind == row.Timestamp {
			day = row.DateValue(row.DateOf(c.local(a)))
		}
		moved := monthsLater(day.Date().Time(), months.Int())
		if y := moved.Year(); y < 1 || y > 9999 {
			return row.Value{}, fmt.Errorf("%s plus %d months is outside the years 1 to 9999", a, months.Int())
		}
		if kind == row.DateKind {
			return row.DateValue(row.DateOf(moved)), nil
		}
		return c.sameClock(a, moved)
	}), nil
}

func monthsLater(t time.Time, months int64) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(months), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(t.Day(), last)-1)
}

// If a clock change repeats the time, it is the one with the offset of a.
func (c *call) sameClock(a row.Value, day time.Time) (row.Value, error) {
	at := c.local(a)
	_, offset := at.Zone()
	wall := day.Add(at.Add(time.Duration(offset) * time.Second).UTC().Sub(row.DateOf(at).Time()))
	same := wall.Add(-time.Duration(offset) * time.Second)
	if c.home == nil {
		return row.TimestampValue(wall), nil
	}
	if _, now := same.In(c.home).Zone(); now == offset {
		return row.TimestampValue(same), nil
	}
	t, err := row.LocalTime(wall, c.home)
	return row.TimestampValue(t), err
}

func monthsBetween(c *call) (*typed, error) {
	return c.apply2(row.Int, func(a, b row.Value) (row.Value, error) {
		from, to, sign := a.Date(), b.Date(), int64(1)
		if to < from {
			from, to, sign = to, from, -1
		}
		n := int64(to.Year()-from.Year())*12 + int64(to.Month()-from.Month())
		last := row.NewDate(to.Year(), time.Month(to.Month()+1), 0).Day()
		if to.Day() < min(from.Day(), last) {
			n--
		}
		return row.IntValue(sign * n), nil
	}), c.wantAll(row.DateKind, row.DateKind)
}

func truncate(c *call) (*typed, error) {
	if err := c.want(0, row.DateKind, row.Timestamp); err != nil {
		return nil, err
	}
	kind, unit := c.args[0].kind, c.args[1]
	units := []string{"year", "quarter", "month", "week", "day"}
	if kind == row.Timestamp {
		units = append(units, "hour", "minute")
	}
	name := unit.value.Str()
	if !unit.literal || !slices.Contains(units, name) {
		return nil, errorf(unit.at, "truncate supports '%s', written in quotes", strings.Join(units, "', '"))
	}
	return c.apply1(kind, func(a row.Value) (row.Value, error) {
		if kind == row.DateKind {
			return row.DateValue(row.DateOf(beginning(a.Date().Time(), name))), nil
		}
		return row.TimestampValue(c.beginning(c.local(a), name)), nil
	}), nil
}

func (c *call) beginning(at time.Time, unit string) time.Time {
	_, offset := at.Zone()
	wall := beginning(at.Add(time.Duration(offset)*time.Second).UTC(), unit)
	if unit == "hour" || unit == "minute" { // of the same pass, if a clock change repeats the hour
		return wall.Add(-time.Duration(offset) * time.Second)
	}
	return row.DateOf(wall).Begins(c.home)
}

func beginning(t time.Time, unit string) time.Time {
	year, month, day := t.Date()
	switch unit {
	case "year":
		month, day = 1, 1
	case "quarter":
		month, day = (month-1)/3*3+1, 1
	case "month":
		day = 1
	case "week":
		day -= isoWeekday(t) - 1
	case "hour":
		return time.Date(year, month, day, t.Hour(), 0, 0, 0, time.UTC)
	case "minute":
		return time.Date(year, month, day, t.Hour(), t.Minute(), 0, 0, time.UTC)
	}
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}
