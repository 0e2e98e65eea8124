package schedule_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/schedule"
)

type field struct {
	text   string
	values map[int]bool
}

func drawField(t *rapid.T, name string, size int) field {
	f := field{values: map[int]bool{}}
	switch rapid.IntRange(0, 2).Draw(t, name+" form") {
	case 0:
		f.text = "*"
		step := 1
		if rapid.Bool().Draw(t, name+" stepped") {
			step = rapid.IntRange(2, size/2).Draw(t, name+" step")
			f.text = "*/" + strconv.Itoa(step)
		}
		for v := 0; v < size; v += step {
			f.values[v] = true
		}
	default:
		var texts []string
		for _, v := range rapid.SliceOfNDistinct(rapid.IntRange(0, min(size, 5*size/24)-1), 1, 3, rapid.ID[int]).Draw(t, name) {
			if size == 60 {
				v *= 5
			}
			f.values[v] = true
			texts = append(texts, strconv.Itoa(v))
		}
		f.text = strings.Join(texts, ",")
	}
	return f
}

// window is a few days around a clock change of a zone that has some.
type window struct {
	zone     *time.Location
	from, to time.Time
}

func drawWindow(t *rapid.T) window {
	name := rapid.SampledFrom([]string{
		"Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Cairo", "Pacific/Apia", "UTC",
	}).Draw(t, "zone")
	zone, err := schedule.LoadZone(name)
	require.NoError(t, err)
	middle := time.Date(rapid.IntRange(2000, 2040).Draw(t, "year"), time.Month(rapid.IntRange(1, 12).Draw(t, "month")), 1, 0, 0, 0, 0, zone)
	if _, end := middle.ZoneBounds(); !end.IsZero() {
		middle = end.Add(time.Duration(rapid.IntRange(-120, 120).Draw(t, "offset")) * time.Minute)
	}
	return window{zone: zone, from: middle.Add(-30 * time.Hour), to: middle.Add(30 * time.Hour)}
}

func drawCron(t *rapid.T, w window) (c *schedule.Cron, minutes, hours field) {
	minutes, hours = drawField(t, "minute", 60), drawField(t, "hour", 24)
	c, err := schedule.Parse(fmt.Sprintf("%s %s * * *", minutes.text, hours.text), w.zone)
	require.NoError(t, err)
	return c, minutes, hours
}

func collect(c *schedule.Cron, w window) []schedule.Time {
	var list []schedule.Time
	for due := range c.All(w.from) {
		if due.At.After(w.to) {
			break
		}
		list = append(list, due)
	}
	return list
}

func TestTimesAreThoseThatAWatchedClockShows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWindow(t)
		c, minutes, hours := drawCron(t, w)
		named := func(wall time.Time) bool { return minutes.values[wall.Minute()] && hours.values[wall.Hour()] }
		var want []string
		due := func(wall, at time.Time) {
			if at.After(w.from) && !at.After(w.to) {
				want = append(want, wall.Format("02T15:04")+at.UTC().Format(" 02T15:04"))
			}
		}
		seen := map[time.Time]bool{}
		begin := w.from.Add(-48 * time.Hour).Truncate(time.Minute)
		wallOf := func(at time.Time) time.Time {
			_, offset := at.In(w.zone).Zone()
			return at.UTC().Add(time.Duration(offset) * time.Second)
		}
		before := wallOf(begin.Add(-time.Minute))
		for at := begin; !at.After(w.to); at = at.Add(time.Minute) {
			wall := wallOf(at)
			skipped := false
			for gap := before.Add(time.Minute); gap.Before(wall); gap = gap.Add(time.Minute) {
				if named(gap) && !seen[gap] {
					skipped = true
					if !c.Wildcard() {
						due(gap, at)
					}
				}
			}
			if c.Wildcard() && (named(wall) || skipped) || !c.Wildcard() && named(wall) && !seen[wall] {
				due(wall, at)
			}
			seen[wall], before = true, wall
		}
		var got []string
		for _, d := range collect(c, w) {
			got = append(got, d.Wall.Format("02T15:04")+d.At.Format(" 02T15:04"))
		}
		require.Equal(t, want, got, "%s in %s from %v", c, w.zone, w.from)
	})
}

func TestNoKeyIsThereTwiceAndTimesAreInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWindow(t)
		c, _, _ := drawCron(t, w)
		keys := map[string]bool{}
		list := collect(c, w)
		for _, d := range list {
			require.False(t, keys[d.Key], "%s twice", d.Key)
			keys[d.Key] = true
		}
		require.True(t, slices.IsSortedFunc(list, func(a, b schedule.Time) int { return a.At.Compare(b.At) }))
		require.Equal(t, c.Next(w.from), list[0])
	})
}

func TestCatchingUpIsTheListThatOneWouldHaveHad(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWindow(t)
		c, _, _ := drawCron(t, w)
		var got []schedule.Time
		until := w.from
		for now := w.from; now.Before(w.to); {
			now = now.Add(time.Duration(rapid.IntRange(1, 2000).Draw(t, "minutes")) * time.Minute)
			if now.After(w.to) {
				now = w.to
			}
			for more := true; more; {
				due, err := c.Due(until, now, schedule.CatchUpAll)
				require.NoError(t, err)
				got = append(got, due.Times...)
				until, more = due.Until, due.More
			}
			require.Equal(t, now, until)
		}
		require.Equal(t, collect(c, w), got)
	})
}

func TestWhatIsDueAndWhatIsMissedIsAllThatThereWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWindow(t)
		c, _, _ := drawCron(t, w)
		all := collect(c, w)
		for _, policy := range []schedule.CatchUp{schedule.CatchUpNone, schedule.CatchUpLast} {
			due, err := c.Due(w.from, w.to, policy)
			require.NoError(t, err)
			require.Equal(t, min(schedule.MaxDue, len(all)-len(due.Times)), due.Missed)
			require.Equal(t, all[len(all)-len(due.Times):], append([]schedule.Time{}, due.Times...))
			if policy == schedule.CatchUpLast {
				require.NotEmpty(t, due.Times)
			}
		}
	})
}
