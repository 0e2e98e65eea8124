//test:plain

package calendar_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func day(t *testing.T, text string) row.Date {
	t.Helper()
	d, err := row.ParseDate(text)
	require.NoError(t, err)
	return d
}

func TestEasterIsWhereTheChurchHasIt(t *testing.T) {
	t.Parallel()
	for year, want := range map[int]string{1961: "1961-04-02", 2000: "2000-04-23", 2008: "2008-03-23", 2024: "2024-03-31", 2025: "2025-04-20", 2026: "2026-04-05", 2027: "2027-03-28", 2038: "2038-04-25"} {
		require.Equal(t, want, calendar.Easter(year).String())
	}
}

func TestTARGETIsClosedOnItsDays(t *testing.T) {
	t.Parallel()
	c := calendar.Stock()["TARGET"]
	for text, want := range map[string]bool{
		"2026-01-01": false, "2026-04-03": false, "2026-04-06": false, "2026-05-01": false, "2026-12-25": false, "2026-12-26": false,
		"2026-04-04": false, "2026-04-07": true, "2026-12-24": true, "2026-12-31": true, "2026-05-25": true, "2027-03-26": false,
	} {
		open, err := c.IsBusinessDay(day(t, text))
		require.NoError(t, err)
		require.Equal(t, want, open, text)
	}
	for _, x := range []struct {
		from string
		n    int64
		want string
	}{
		{"2026-04-07", -1, "2026-04-02"}, {"2026-04-02", 1, "2026-04-07"}, {"2026-04-05", 0, "2026-04-07"}, {"2026-04-07", 0, "2026-04-07"},
		{"2026-12-24", 2, "2026-12-29"}, {"2026-12-26", -1, "2026-12-24"},
	} {
		got, err := c.Add(day(t, x.from), x.n)
		require.NoError(t, err)
		require.Equal(t, x.want, got.String(), "%s %d", x.from, x.n)
	}
}

func TestACalendarOfOnesOwn(t *testing.T) {
	t.Parallel()
	c, err := calendar.New(calendar.Config{
		Name: "plant", Base: calendar.Stock()["TARGET"], Weekend: []time.Weekday{time.Friday}, Holidays: []row.Date{day(t, "2026-12-24")}, Until: day(t, "2026-12-31"),
	})
	require.NoError(t, err)
	got, err := c.Add(day(t, "2026-12-23"), 1)
	require.NoError(t, err)
	require.Equal(t, "2026-12-27", got.String(), "a Sunday; 25 is a Friday and 26 a holiday of TARGET")
	_, err = c.Add(day(t, "2026-12-31"), 1)
	require.ErrorContains(t, err, "the calendar plant has holidays until 2026-12-31, so 2027-01-01 is unknown")
	_, err = calendar.New(calendar.Config{Name: "never", Weekend: []time.Weekday{0, 1, 2, 3, 4, 5, 6}})
	require.ErrorContains(t, err, "has no business day")
}

func TestBusinessDaysAreCountedThereAndBack(t *testing.T) {
	t.Parallel()
	c := calendar.Stock()["TARGET"]
	rapid.Check(t, func(rt *rapid.T) {
		from, err := c.Add(row.Date(rapid.Int32Range(0, 40_000).Draw(rt, "day")), 0)
		require.NoError(rt, err)
		n := rapid.Int64Range(-300, 300).Draw(rt, "n")
		to, err := c.Add(from, n)
		require.NoError(rt, err)
		back, err := c.Add(to, -n)
		require.NoError(rt, err)
		require.Equal(rt, from, back)
	})
}
