package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/schedule"
)

func parse(t testing.TB, expression, zone string) *schedule.Cron {
	t.Helper()
	z, err := schedule.LoadZone(zone)
	require.NoError(t, err)
	c, err := schedule.Parse(expression, z)
	require.NoError(t, err, expression)
	return c
}

// upTo returns the times after from and up to to, as "KEY at LOCAL TIME".
func upTo(c *schedule.Cron, from, to time.Time) []string {
	list := []string{}
	for due := range c.All(from) {
		if due.At.After(to) {
			break
		}
		list = append(list, due.Key+" at "+due.At.In(c.Zone()).Format("02 15:04 -0700"))
	}
	return list
}

func at(t testing.TB, zone, text string) time.Time {
	t.Helper()
	z, err := schedule.LoadZone(zone)
	require.NoError(t, err)
	x, err := time.ParseInLocation("2006-01-02 15:04", text, z)
	require.NoError(t, err)
	return x
}

func TestAClockChangeCostsNoRunAndDoublesNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, cron, zone, from, to string
		want                       []string
	}{
		{
			"a time that is skipped is due at the end of the gap", "30 2 * * *", "Europe/Berlin", "2026-03-28 12:00", "2026-03-30 12:00",
			[]string{"2026-03-29T02:30 at 29 03:00 +0200", "2026-03-30T02:30 at 30 02:30 +0200"},
		},
		{
			"each time that is skipped is due", "0,30 2,3 * * *", "Europe/Berlin", "2026-03-28 12:00", "2026-03-29 12:00",
			[]string{"2026-03-29T02:00 at 29 03:00 +0200", "2026-03-29T02:30 at 29 03:00 +0200", "2026-03-29T03:00 at 29 03:00 +0200", "2026-03-29T03:30 at 29 03:30 +0200"},
		},
		{
			"a time that is repeated is due in the first pass", "30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-26 12:00",
			[]string{"2026-10-25T02:30 at 25 02:30 +0200", "2026-10-26T02:30 at 26 02:30 +0100"},
		},
		{
			"an interval goes through a repeated hour", "*/30 * * * *", "America/New_York", "2026-11-01 00:30", "2026-11-01 02:00",
			[]string{"2026-11-01T01:00 at 01 01:00 -0400", "2026-11-01T01:30 at 01 01:30 -0400", "2026-11-01T01:00-05:00 at 01 01:00 -0500", "2026-11-01T01:30-05:00 at 01 01:30 -0500", "2026-11-01T02:00 at 01 02:00 -0500"},
		},
		{
			"an interval goes through a gap", "*/30 * * * *", "America/New_York", "2026-03-08 01:00", "2026-03-08 03:30",
			[]string{"2026-03-08T01:30 at 08 01:30 -0500", "2026-03-08T03:00 at 08 03:00 -0400", "2026-03-08T03:30 at 08 03:30 -0400"},
		},
		{
			"an hour that half a gap takes away", "@hourly", "Australia/Lord_Howe", "2026-10-04 00:30", "2026-10-04 04:00",
			[]string{"2026-10-04T01:00 at 04 01:00 +1030", "2026-10-04T02:30 at 04 02:30 +1100", "2026-10-04T03:00 at 04 03:00 +1100", "2026-10-04T04:00 at 04 04:00 +1100"},
		},
		{
			"half an hour that is repeated", "*/15 1 * * *", "Australia/Lord_Howe", "2026-04-05 00:30", "2026-04-05 04:00",
			[]string{
				"2026-04-05T01:00 at 05 01:00 +1100", "2026-04-05T01:15 at 05 01:15 +1100", "2026-04-05T01:30 at 05 01:30 +1100", "2026-04-05T01:45 at 05 01:45 +1100",
				"2026-04-05T01:30+10:30 at 05 01:30 +1030", "2026-04-05T01:45+10:30 at 05 01:45 +1030",
			},
		},
		{
			"a zone that never changes", "0 9 * * MON-FRI", "Asia/Tokyo", "2026-11-20 08:00", "2026-11-23 23:00",
			[]string{"2026-11-20T09:00 at 20 09:00 +0900", "2026-11-23T09:00 at 23 09:00 +0900"},
		},
		{
			"a midnight that is skipped", "0 0 * * *", "America/Sao_Paulo", "2018-11-03 12:00", "2018-11-05 12:00",
			[]string{"2018-11-04T00:00 at 04 01:00 -0200", "2018-11-05T00:00 at 05 00:00 -0200"},
		},
		{
			"a day that is skipped", "0 2 * * *", "Pacific/Apia", "2011-12-29 01:00", "2011-12-31 23:00",
			[]string{"2011-12-29T02:00 at 29 02:00 -1000", "2011-12-30T02:00 at 31 00:00 +1400", "2011-12-31T02:00 at 31 02:00 +1400"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, upTo(parse(t, c.cron, c.zone), at(t, c.zone, c.from), at(t, c.zone, c.to)))
		})
	}
}

func TestDaysAreThoseOfVixieCron(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string][]string{
		"0 0 13 * FRI":  {"2026-11-06", "2026-11-13", "2026-11-20", "2026-11-27"}, // either
		"0 0 */2 * FRI": {"2026-11-13", "2026-11-27"},                             // both: a field begins with *
		"0 0 L * *":     {"2026-11-30"},
		"0 0 LW 10 *":   {},
		"0 0 * * FRI#2": {"2026-11-13"},
		"@weekly":       {"2026-11-01", "2026-11-08", "2026-11-15", "2026-11-22", "2026-11-29"},
	} {
		days := []string{}
		for due := range parse(t, expression, "UTC").All(at(t, "UTC", "2026-10-31 12:00")) {
			if due.At.After(at(t, "UTC", "2026-11-30 12:00")) {
				break
			}
			days = append(days, due.Wall.Format(time.DateOnly))
		}
		require.Equal(t, want, days, expression)
	}
	leap := parse(t, "0 0 29 2 *", "UTC")
	require.Equal(t, "2104-02-29T00:00", leap.Next(at(t, "UTC", "2096-03-01 00:00")).Key)
}

func TestAnExpressionThatIsWrongIsRefused(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"":                        "is empty",
		"* * * *":                 "has 4 fields, but needs five",
		"0 0 2 * * *":             "has 6 fields, but needs five",
		"0 0 30 2 *":              "it never occurs",
		"0 0 31 4,6,9,11 *":       "it never occurs",
		"61 * * * *":              "61",
		"@every 1h":               "allowed are @yearly",
		"TZ=Asia/Tokyo 0 0 * * *": "its own key",
		"0 0 * * XYZ":             "XYZ",
		"H * * * *":               "H",
	} {
		_, err := schedule.Parse(expression, time.UTC)
		require.ErrorContains(t, err, want, expression)
	}
	_, err := schedule.Parse("0 0 30 2 *", time.UTC)
	require.ErrorIs(t, err, schedule.ErrNever)
	for _, zone := range []string{"Local", "local", "Europe/Nowhere", "../etc/passwd"} {
		_, err := schedule.LoadZone(zone)
		require.Error(t, err, zone)
	}
}

func TestWhatWasMissedIsCaughtUpByThePolicy(t *testing.T) {
	t.Parallel()
	c := parse(t, "0 * * * *", "UTC")
	last, now := at(t, "UTC", "2026-11-22 00:00"), at(t, "UTC", "2026-11-22 05:20")
	keys := func(due schedule.Due) []string {
		list := []string{}
		for _, d := range due.Times {
			list = append(list, d.Key[len("2026-11-22T"):])
		}
		return list
	}
	for _, w := range []struct {
		policy schedule.CatchUp
		now    time.Time
		keys   []string
		missed int
	}{
		{schedule.CatchUpNone, now, []string{}, 5},
		{schedule.CatchUpLast, now, []string{"05:00"}, 4},
		{schedule.CatchUpAll, now, []string{"01:00", "02:00", "03:00", "04:00", "05:00"}, 0},
		{schedule.CatchUpNone, now.Add(-20 * time.Minute), []string{"05:00"}, 4},
		{schedule.CatchUpLast, now.Add(-20 * time.Minute), []string{"05:00"}, 4},
		{schedule.CatchUpLast, last, []string{}, 0},
	} {
		due, err := c.Due(last, w.now, w.policy)
		require.NoError(t, err)
		require.Equal(t, w.keys, keys(due), w.policy)
		require.Equal(t, w.missed, due.Missed, w.policy)
		require.Equal(t, w.now, due.Until)
		require.False(t, due.More)
	}
	_, err := c.Due(last, now, "some")
	require.ErrorContains(t, err, "allowed: none, last, all")
}

func TestYearsOfMissedMinutesAreBounded(t *testing.T) {
	t.Parallel()
	minutes := parse(t, "* * * * *", "Europe/Berlin")
	now := at(t, "Europe/Berlin", "2026-11-22 05:20")
	due, err := minutes.Due(time.Time{}, now.Add(90*time.Second), schedule.CatchUpLast)
	require.NoError(t, err)
	require.Len(t, due.Times, 1)
	require.Equal(t, schedule.MaxDue, due.Missed)
	due, err = minutes.Due(now.AddDate(-10, 0, 0), now, schedule.CatchUpAll)
	require.NoError(t, err)
	require.Len(t, due.Times, schedule.MaxDue)
	require.True(t, due.More)
	require.Equal(t, due.Times[schedule.MaxDue-1].At, due.Until)
	leap := parse(t, "0 0 29 2 *", "UTC")
	due, err = leap.Due(time.Time{}, now, schedule.CatchUpLast)
	require.NoError(t, err)
	require.Equal(t, "2024-02-29T00:00", due.Times[0].Key)
}

// Rule OP18.
func TestATimeIsNamedByItsLocalTimeOrItsInstant(t *testing.T) {
	t.Parallel()
	nightly, quarters := parse(t, "30 2 * * *", "Europe/Berlin"), parse(t, "*/15 * * * *", "Europe/Berlin")
	now := at(t, "Europe/Berlin", "2026-11-27 14:37").Add(29 * time.Second)
	for _, c := range []struct {
		of        *schedule.Cron
		text, key string
		due       bool
		at        string
	}{
		{nightly, "", "2026-11-27T14:37", false, "2026-11-27T13:37:00Z"},
		{nightly, "2026-11-27T02:30", "2026-11-27T02:30", true, "2026-11-27T01:30:00Z"},
		{nightly, "2026-11-27T02:30:59", "2026-11-27T02:30", true, "2026-11-27T01:30:00Z"},
		{nightly, "2026-11-27T01:30:10Z", "2026-11-27T02:30", true, "2026-11-27T01:30:00Z"},
		{nightly, "2026-11-27T02:30+01:00", "2026-11-27T02:30", true, "2026-11-27T01:30:00Z"},
		{nightly, "2026-11-27T02:31", "2026-11-27T02:31", false, "2026-11-27T01:31:00Z"},
		{nightly, "2026-03-29T02:30", "2026-03-29T02:30", true, "2026-03-29T01:00:00Z"}, // skipped, and due at the end of the gap
		{nightly, "2026-10-25T02:30", "2026-10-25T02:30", true, "2026-10-25T00:30:00Z"},
		{nightly, "2026-10-25T02:30+01:00", "2026-10-25T02:30+01:00", false, "2026-10-25T01:30:00Z"},
		{quarters, "2026-10-25T02:30+01:00", "2026-10-25T02:30+01:00", true, "2026-10-25T01:30:00Z"},
		{quarters, "2026-10-25T02:30", "2026-10-25T02:30", true, "2026-10-25T00:30:00Z"},
	} {
		got, due, err := c.of.At(c.text, now)
		require.NoError(t, err, c.text)
		require.Equal(t, c.key, got.Key, c.text)
		require.Equal(t, c.due, due, c.text)
		require.Equal(t, c.at, got.At.UTC().Format(time.RFC3339), c.text)
	}
	_, _, err := nightly.At("2026-03-29T02:31", now)
	require.EqualError(t, err, "the clock of Europe/Berlin skips 2026-03-29T02:31")
	for _, text := range []string{"tomorrow", "2026-11-31T00:00", "2026-11-27", "14:30"} {
		_, _, err := nightly.At(text, now)
		require.ErrorContains(t, err, "is not a time, such as 2026-11-27T14:37 or 2026-11-27T13:37:29Z", text)
	}
}
