//test:plain

package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func onDays(t testing.TB, expression, zone string, days *calendar.Calendar, closed schedule.Closed) *schedule.Cron {
	t.Helper()
	c, err := parse(t, expression, zone).On(days, closed)
	require.NoError(t, err)
	return c
}

func TestATimeOnAClosedDayIsLeftOutOrMoves(t *testing.T) {
	t.Parallel()
	target := calendar.Stock()["TARGET"] // Easter of 2026 is closed from Friday 3 to Monday 6 April
	for _, c := range []struct {
		name, cron string
		closed     schedule.Closed
		from, to   string
		want       []string
	}{
		{
			"each business day", "30 6 * * *", schedule.ClosedSkip, "2026-04-01 12:00", "2026-04-08 12:00",
			[]string{"2026-04-02T06:30 at 02 06:30 +0200", "2026-04-07T06:30 at 07 06:30 +0200", "2026-04-08T06:30 at 08 06:30 +0200"},
		},
		{
			"times that fall together are one", "30 6 * * *", schedule.ClosedNext, "2026-04-01 12:00", "2026-04-08 12:00",
			[]string{"2026-04-02T06:30 at 02 06:30 +0200", "2026-04-07T06:30 at 07 06:30 +0200", "2026-04-08T06:30 at 08 06:30 +0200"},
		},
		{
			"the first of the month moves", "0 6 1 * *", schedule.ClosedNext, "2026-04-02 00:00", "2026-08-31 00:00",
			[]string{"2026-05-04T06:00 at 04 06:00 +0200", "2026-06-01T06:00 at 01 06:00 +0200", "2026-07-01T06:00 at 01 06:00 +0200", "2026-08-03T06:00 at 03 06:00 +0200"},
		},
		{
			"what moves keeps its time of day and the order of the day it comes to", "0 18 * * SAT", schedule.ClosedNext, "2026-04-04 19:00", "2026-04-13 23:00",
			[]string{"2026-04-07T18:00 at 07 18:00 +0200", "2026-04-13T18:00 at 13 18:00 +0200"},
		},
		{
			"several times of several closed days", "0 8,20 4,5 4 *", schedule.ClosedNext, "2026-04-05 10:00", "2026-04-30 00:00",
			[]string{"2026-04-07T08:00 at 07 08:00 +0200", "2026-04-07T20:00 at 07 20:00 +0200"},
		},
		{
			"how often", "0 */12 * * *", schedule.ClosedSkip, "2026-04-02 00:00", "2026-04-07 12:00",
			[]string{"2026-04-02T12:00 at 02 12:00 +0200", "2026-04-07T00:00 at 07 00:00 +0200", "2026-04-07T12:00 at 07 12:00 +0200"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			on := onDays(t, c.cron, "Europe/Berlin", target, c.closed)
			require.Equal(t, c.want, upTo(on, at(t, "Europe/Berlin", c.from), at(t, "Europe/Berlin", c.to)))
		})
	}
}

func TestWhatWasMissedOnClosedDaysIsNotCaughtUp(t *testing.T) {
	t.Parallel()
	on := onDays(t, "30 6 * * *", "Europe/Berlin", calendar.Stock()["TARGET"], schedule.ClosedSkip)
	due, err := on.Due(at(t, "Europe/Berlin", "2026-04-01 12:00"), at(t, "Europe/Berlin", "2026-04-06 12:00"), schedule.CatchUpAll)
	require.NoError(t, err)
	require.Len(t, due.Times, 1)
	require.Equal(t, "2026-04-02T06:30", due.Times[0].Key)
	due, err = on.Due(at(t, "Europe/Berlin", "2026-04-02 12:00"), at(t, "Europe/Berlin", "2026-04-06 12:00"), schedule.CatchUpLast)
	require.NoError(t, err)
	require.Empty(t, due.Times)
	require.Zero(t, due.Missed)
}

func TestBeyondItsCalendarAScheduleSaysSo(t *testing.T) {
	t.Parallel()
	until, err := row.ParseDate("2026-04-02")
	require.NoError(t, err)
	days, err := calendar.New(calendar.Config{Name: "plant", Base: calendar.Stock()["TARGET"], Until: until})
	require.NoError(t, err)
	for _, zone := range []string{"UTC", "Europe/Berlin"} {
		for _, cron := range []string{"30 6 * * *", "*/15 * * * *"} {
			for _, closed := range []schedule.Closed{schedule.ClosedSkip, schedule.ClosedNext} {
				on := onDays(t, cron, zone, days, closed)
				require.NotEmpty(t, upTo(on, at(t, zone, "2026-04-01 00:00"), at(t, zone, "2026-06-01 00:00")))
				require.True(t, on.Next(at(t, zone, "2026-04-03 00:00")).At.IsZero())
				_, err = on.Due(at(t, zone, "2026-04-01 00:00"), at(t, zone, "2026-04-03 00:00"), schedule.CatchUpLast)
				require.ErrorContains(t, err, "the calendar plant has holidays until 2026-04-02")
			}
		}
	}
	_, err = parse(t, "30 6 * * *", "UTC").On(days, "")
	require.ErrorContains(t, err, "skip, next")
}

func TestTheTimesOfBusinessDaysAreThoseOfTheirDefinition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		closed := rapid.SampledFrom([]schedule.Closed{schedule.ClosedSkip, schedule.ClosedNext}).Draw(rt, "closed")
		var holidays []row.Date
		begin := row.NewDate(2026, time.March, 1)
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 60), 0, 20).Draw(rt, "holidays") {
			holidays = append(holidays, begin.AddDays(n))
		}
		days, err := calendar.New(calendar.Config{Name: "some", Holidays: holidays})
		require.NoError(rt, err)
		expression := rapid.SampledFrom([]string{"30 6 * * *", "0 5,17 1,15,16 * *", "0 12 * * SUN", "0 */6 * * SAT,TUE"}).Draw(rt, "cron")
		stored := days.Days()
		on, err := schedule.Of(taskports.Schedule{Cron: expression, Timezone: "UTC", Calendar: &stored, WhenClosed: string(closed)})
		require.NoError(rt, err)
		from, to := begin.Time(), begin.AddDays(60).Time()
		want := map[string]bool{}
		for w := range parse(t, expression, "UTC").All(from.AddDate(0, -2, 0)) {
			if w.At.After(to) {
				break
			}
			day := row.Date(0).AddDays(int(w.At.Unix() / 86400))
			open, err := days.IsBusinessDay(day)
			require.NoError(rt, err)
			moved := w.At
			if !open && closed == schedule.ClosedSkip {
				continue
			} else if !open {
				next, err := days.Add(day, 0)
				require.NoError(rt, err)
				moved = next.Time().Add(w.At.Sub(day.Time()))
			}
			if moved.After(from) && !moved.After(to) {
				want[moved.Format(time.RFC3339)] = true
			}
		}
		got := map[string]bool{}
		last := from
		for w := range on.All(from) {
			if w.At.After(to) {
				break
			}
			require.True(rt, w.At.After(last), "in order")
			last = w.At
			got[w.At.Format(time.RFC3339)] = true
		}
		require.Equal(rt, want, got)
	})
}
