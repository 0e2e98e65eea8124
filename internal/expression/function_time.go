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
		{"date", "date('2026-01-31'), date(text, 'dd.MM.yyyy'), date(timestamp)", 1, 2, toDate},
		{"timestamp", "timestamp('2026-01-31T08:30:00Z'), timestamp(text, 'yyyy-MM-dd HH:mm'), timestamp(date)", 1, 2, toTimestamp},
		{"duration", "duration('1h30m')", 1, 1, func(c *call) (*typed, error) {
			return c.apply1(kindDuration, func(a row.Value) (row.Value, error) {
				d, err := time.ParseDuration(strings.TrimSpace(a.Str()))
				if err != nil {
					return row.Value{}, fmt.Errorf("%s is not a duration (such as 90s, 1h30m)", quote(a.Str()))
				}
				return row.IntValue(int64(d)), nil
			}), c.wantAll(row.String)
		}},
		{"format", "format(date or timestamp, 'yyyyMMdd')", 2, 2, format},
	}
}

// datePart reads timestamps in UTC.
func datePart(c *call, part func(row.Date) int) (*typed, error) {
	if err := c.want(0, row.DateKind, row.Timestamp); err != nil {
		return nil, err
	}
	if c.is(0, row.DateKind) {
		return c.apply1(row.Int, func(a row.Value) (row.Value, error) { return row.IntValue(int64(part(a.Date()))), nil }), nil
	}
	return c.apply1(row.Int, func(a row.Value) (row.Value, error) { return row.IntValue(int64(part(row.DateOf(a.Time())))), nil }), nil
}

func toDate(c *call) (*typed, error) {
	if len(c.args) == 2 {
		return parsed(c, row.DateKind)
	}
	if err := c.want(0, row.String, row.DateKind, row.Timestamp); err != nil || c.is(0, row.DateKind) {
		return c.args[0], err
	}
	if c.is(0, row.Timestamp) {
		return c.apply1(row.DateKind, func(a row.Value) (row.Value, error) { return row.DateValue(row.DateOf(a.Time())), nil }), nil
	}
	return parsed(c, row.DateKind)
}

func toTimestamp(c *call) (*typed, error) {
	if len(c.args) == 2 {
		return parsed(c, row.Timestamp)
	}
	if err := c.want(0, row.String, row.Timestamp, row.DateKind); err != nil || c.is(0, row.Timestamp) {
		return c.args[0], err
	}
	if c.is(0, row.DateKind) {
		return c.apply1(row.Timestamp, func(a row.Value) (row.Value, error) { return row.TimestampValue(a.Date().Time()), nil }), nil
	}
	return parsed(c, row.Timestamp)
}

// parsed reads the first argument as a field of that kind and of the format in
// the second, by the same rules as a reader does.
func parsed(c *call, kind row.Kind) (*typed, error) {
	if err := c.wantAll(row.String, row.String); err != nil {
		return nil, err
	}
	if len(c.args) == 1 {
		read, err := textReader(kind, "")
		return c.apply1(kind, read), err
	}
	read, err := c.patterned(func(pattern string) (func(row.Value) (row.Value, error), error) { return textReader(kind, pattern) })
	if err != nil {
		return nil, err
	}
	return c.apply2(kind, read), nil
}

func textReader(kind row.Kind, pattern string) (func(row.Value) (row.Value, error), error) {
	schema, err := row.NewSchema(row.Field{Name: "text", Kind: kind, Format: pattern, Nulls: []string{}})
	if err != nil {
		return nil, fmt.Errorf("%s is no format: %w", quote(pattern), err)
	}
	field := schema.Field(0)
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
	write, err := c.patterned(func(pattern string) (func(row.Value) (row.Value, error), error) {
		layout, err := row.Layout(pattern)
		if err != nil {
			return nil, err
		}
		return func(a row.Value) (row.Value, error) {
			t := a.Time()
			if a.Kind() == row.DateKind {
				t = a.Date().Time()
			}
			return row.StringValue(t.Format(layout)), nil
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return c.apply2(row.String, write), nil
}

// patterned makes a rule whose second argument is a pattern: once if the pattern
// is constant, at every evaluation otherwise.
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
