package expression

import (
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func timeFunctions() []function {
	return []function{
		{"year", "year(date or timestamp)", 1, 1, func(c *call) (*typed, error) { return datePart(c, row.Date.Year) }},
		{"month", "month(date or timestamp): 1 to 12", 1, 1, func(c *call) (*typed, error) { return datePart(c, row.Date.Month) }},
		{"day", "day(date or timestamp): 1 to 31", 1, 1, func(c *call) (*typed, error) { return datePart(c, row.Date.Day) }},
		{"date", "date('2026-01-31'), date(text, 'dd.MM.yyyy'), date(timestamp), date(timestamp, 'Europe/Berlin')", 1, 2, toDate},
		{"timestamp", "timestamp('2026-01-31T08:30:00Z'), timestamp('2026-01-31T08:30:00') in the job's timezone, timestamp(text, 'yyyy-MM-dd HH:mm'), timestamp(text, 'dd.MM.yyyy HH:mm', 'Europe/Berlin'), timestamp(int, 'epoch_ms'), timestamp(date); formats as in fields", 1, 3, toTimestamp},
		{"duration", "duration('1h30m')", 1, 1, func(c *call) (*typed, error) {
			return c.apply1(kindDuration, func(a row.Value) (row.Value, error) {
				d, err := time.ParseDuration(strings.TrimSpace(a.Str()))
				if err != nil {
					return row.Value{}, fmt.Errorf("%s is not a duration (such as 90s, 1h30m)", quote(a.Str()))
				}
				return row.IntValue(int64(d)), nil
			}), c.wantAll(row.String)
		}},
		{"format", "format(date or timestamp, 'yyyyMMdd'), format(timestamp, 'dd.MM.yyyy HH:mm', 'Europe/Berlin'); formats as in fields", 2, 3, format},
	}
}

func datePart(c *call, part func(row.Date) int) (*typed, error) {
	if err := c.want(0, row.DateKind, row.Timestamp); err != nil {
		return nil, err
	}
	if c.is(0, row.DateKind) {
		return c.apply1(row.Int, func(a row.Value) (row.Value, error) { return row.IntValue(int64(part(a.Date()))), nil }), nil
	}
	return c.apply1(row.Int, func(a row.Value) (row.Value, error) { return row.IntValue(int64(part(row.DateOf(c.local(a))))), nil }), nil
}

func toDate(c *call) (*typed, error) {
	if len(c.args) == 2 && c.is(0, row.Timestamp) {
		return dayIn(c)
	}
	if len(c.args) == 2 {
		return parsed(c, row.DateKind)
	}
	if err := c.want(0, row.String, row.DateKind, row.Timestamp); err != nil || c.is(0, row.DateKind) {
		return c.args[0], err
	}
	if c.is(0, row.Timestamp) {
		return c.apply1(row.DateKind, func(a row.Value) (row.Value, error) { return row.DateValue(row.DateOf(c.local(a))), nil }), nil
	}
	return parsed(c, row.DateKind)
}

func toTimestamp(c *call) (*typed, error) {
	if len(c.args) >= 2 {
		return parsed(c, row.Timestamp)
	}
	if err := c.want(0, row.String, row.Timestamp, row.DateKind); err != nil || c.is(0, row.Timestamp) {
		return c.args[0], err
	}
	if c.is(0, row.DateKind) {
		return c.apply1(row.Timestamp, func(a row.Value) (row.Value, error) { return row.TimestampValue(a.Date().Begins(c.home)), nil }), nil
	}
	return parsed(c, row.Timestamp)
}

func parsed(c *call, kind row.Kind) (*typed, error) {
	if len(c.args) == 2 && c.is(0, row.Int) && c.counts() {
		c.args[0] = c.apply1(row.String, func(a row.Value) (row.Value, error) { return row.StringValue(a.String()), nil })
	}
	if err := c.wantAll(row.String, row.String, row.String); err != nil {
		return nil, err
	}
	if len(c.args) == 1 {
		read, err := textReader(kind, "", c.home)
		return c.apply1(kind, read), err
	}
	zone, err := c.zone(2)
	if err != nil {
		return nil, err
	}
	read, err := c.patterned(func(pattern string) (func(row.Value) (row.Value, error), error) {
		return textReader(kind, pattern, zone)
	})
	if err != nil {
		return nil, err
	}
	c.args = c.args[:2]
	return c.apply2(kind, read), nil
}

func textReader(kind row.Kind, pattern string, zone *time.Location) (func(row.Value) (row.Value, error), error) {
	field, err := formatted(kind, pattern, zone)
	if err != nil {
		return nil, err
	}
	expected := "yyyy-MM-dd"
	if kind == row.Timestamp {
		expected = "yyyy-MM-ddTHH:mm:ssXXX"
	}
	if pattern != "" {
		expected = pattern
	}
	return func(a row.Value) (row.Value, error) {
		v, err := field.Parse(a.Str())
		if err != nil {
			if zone != nil && kind == row.Timestamp { // it may be a time that a clock change skips
				return row.Value{}, fmt.Errorf("%w (%s)", err, expected)
			}
			return row.Value{}, fmt.Errorf("%s is not a %s (%s)", quote(a.Str()), kind, expected)
		}
		return v, nil
	}, nil
}

func format(c *call) (*typed, error) {
	if err := c.want(0, row.DateKind, row.Timestamp); err != nil {
		return nil, err
	}
	if err := c.want(1, row.String); err != nil {
		return nil, err
	}
	if len(c.args) == 3 {
		if err := c.want(0, row.Timestamp); err != nil {
			return nil, err
		}
	}
	zone, err := c.zone(2)
	if err != nil {
		return nil, err
	}
	kind := c.args[0].kind
	write, err := c.patterned(func(pattern string) (func(row.Value) (row.Value, error), error) {
		field, err := formatted(kind, pattern, zone)
		if err != nil {
			return nil, err
		}
		return func(a row.Value) (row.Value, error) { return row.StringValue(string(field.AppendText(nil, a))), nil }, nil
	})
	if err != nil {
		return nil, err
	}
	return c.apply2(row.String, write), nil
}

// patterned compiles a constant pattern once, any other at every evaluation.
func (c *call) patterned(construct func(pattern string) (func(row.Value) (row.Value, error), error)) (func(a, pattern row.Value) (row.Value, error), error) {
	if c.args[1].constant {
		rule, err := construct(c.args[1].value.Str())
		if err != nil {
			return nil, errorf(c.args[1].at, "%v", err)
		}
		return func(a, _ row.Value) (row.Value, error) { return rule(a) }, nil
	}
	return func(a, pattern row.Value) (row.Value, error) {
		rule, err := construct(pattern.Str())
		if err != nil {
			return row.Value{}, err
		}
		return rule(a)
	}, nil
}

func formatted(kind row.Kind, pattern string, zone *time.Location) (*row.Field, error) {
	schema, err := row.NewSchema(row.Field{Name: "text", Kind: kind, Format: pattern, Nulls: []string{}})
	if err != nil {
		return nil, fmt.Errorf("%s is not a format: %w", quote(pattern), err)
	}
	return schema.InZone(zone).Field(0), nil
}

func (c *call) counts() bool {
	if !c.args[1].literal || c.args[1].kind != row.String {
		return false
	}
	field, err := formatted(row.Timestamp, c.args[1].value.Str(), nil)
	return err == nil && field.Counts()
}

func zoneOf(zone *time.Location) *time.Location {
	if zone == time.UTC {
		return nil
	}
	return zone
}

func (c *call) local(v row.Value) time.Time {
	if c.home == nil {
		return v.Time()
	}
	return v.Time().In(c.home)
}

func (c *call) zone(i int) (*time.Location, error) {
	if len(c.args) <= i {
		return c.home, nil
	}
	if err := c.want(i, row.String); err != nil {
		return nil, err
	}
	arg := c.args[i]
	if !arg.literal {
		return nil, errorf(arg.at, "%s needs its time zone as a text in quotes: %s", c.name, c.usage)
	}
	name := arg.value.Str()
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, errorf(arg.at, "there is no time zone %s; names are those of the IANA database, such as UTC or Europe/Berlin", quote(name))
	}
	return zone, nil
}

func dayIn(c *call) (*typed, error) {
	zone, err := c.zone(1)
	if err != nil {
		return nil, err
	}
	return c.apply1(row.DateKind, func(a row.Value) (row.Value, error) { return row.DateValue(row.DateOf(a.Time().In(zone))), nil }), nil
}
