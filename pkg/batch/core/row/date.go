package row

import (
	"fmt"
	"time"
)

// Date is a calendar day without zone (rule D5), in days since 1970-01-01. Compare with < and ==.
type Date int32

// NewDate normalises days beyond the month as time.Date.
func NewDate(year int, month time.Month, day int) Date {
	return Date(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

// DateOf is t's day in its own location.
func DateOf(t time.Time) Date {
	y, m, d := t.Date()
	return NewDate(y, m, d)
}

// ParseDate reads yyyy-MM-dd.
func ParseDate(text string) (Date, error) {
	if d, ok := parseISODate(text); ok {
		return d, nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a date (yyyy-MM-dd)", text)
	}
	return DateOf(t), nil
}

// Time returns midnight UTC of the day.
func (d Date) Time() time.Time { return time.Unix(int64(d)*86400, 0).UTC() }

// String returns yyyy-MM-dd.
func (d Date) String() string { return string(d.Append(make([]byte, 0, len(time.DateOnly)))) }

// Year, Month and Day are the parts.
func (d Date) Year() int { return d.Time().Year() }

// Month returns 1 to 12.
func (d Date) Month() int { return int(d.Time().Month()) }

// Day returns 1 to 31.
func (d Date) Day() int { return d.Time().Day() }

// AddDays returns the date n days later.
func (d Date) AddDays(n int) Date { return d + Date(n) }

// MarshalText writes yyyy-MM-dd.
func (d Date) MarshalText() ([]byte, error) { return d.Append(nil), nil }

// UnmarshalText reads yyyy-MM-dd.
func (d *Date) UnmarshalText(text []byte) error {
	v, err := ParseDate(string(text))
	if err == nil {
		*d = v
	}
	return err
}
