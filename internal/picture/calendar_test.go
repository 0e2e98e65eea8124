package picture_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/picture"
)

func TestACalendarHasTheHoursOfItsZone(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	from := time.Date(2026, 10, 24, 20, 0, 0, 0, zone)
	to := from.Add(24 * time.Hour)
	texts := func(ticks []picture.Tick) (list []string) {
		for _, tick := range ticks {
			list = append(list, tick.Text+tick.At.In(zone).Format(" -07"))
		}
		return list
	}
	require.Equal(t, []string{"21:00 +02", "Sun 25 +02", "03:00 +01", "06:00 +01", "09:00 +01", "12:00 +01", "15:00 +01", "18:00 +01"}, texts(picture.HourTicks(from, to, zone, 3)))
	require.Equal(t, []string{"Sun 29 +01", "01:00 +01", "03:00 +02", "04:00 +02"}, texts(picture.HourTicks(time.Date(2026, 3, 29, 0, 0, 0, 0, zone), time.Date(2026, 3, 29, 4, 0, 0, 0, zone), zone, 1)))
	half, err := time.LoadLocation("Asia/Kolkata")
	require.NoError(t, err)
	require.Len(t, picture.HourTicks(from, to, half, 6), 4)
	require.LessOrEqual(t, len(picture.HourTicks(from, to.AddDate(1, 0, 0), zone, 0)), 200)

	lanes := []picture.Lane{
		{Name: "nightly", Link: "/jobs/nightly", Class: "job", Spans: []picture.Span{
			{Begin: from.Add(time.Hour), End: from.Add(4 * time.Hour), Class: "completed", Text: "✓", Title: "execution 1"},
			{Begin: from.Add(5 * time.Hour), End: from.Add(5 * time.Hour), Class: "failed", Text: "✕", Title: "execution 2", Link: "/executions/2"},
			{Begin: from.Add(11 * time.Hour), Class: "running", Text: "▸"},
			{Begin: from.Add(15 * time.Hour), End: from.Add(17 * time.Hour), Class: "planned"},
			{Begin: from.Add(-9 * time.Hour), End: from.Add(-8 * time.Hour), Class: "none", Title: "before"},
			{Begin: from.Add(90 * time.Hour), End: from.Add(91 * time.Hour), Class: "none", Title: "after"},
		}},
		{Name: "<b>others & more", Class: "many"},
	}
	axis := picture.Axis{From: from, To: to, Now: from.Add(12 * time.Hour), Ticks: picture.HourTicks(from, to, zone, 3)}
	together := picture.Lane{Name: "by hand"}
	for _, minute := range []time.Duration{0, 1, 1, 60, 400} {
		together.Spans = append(together.Spans, picture.Span{Begin: from.Add(minute * time.Minute), End: from.Add((minute + 30) * time.Minute), Class: "failed"})
	}
	lines := picture.Calendar("at the same time", 800, []picture.Lane{together}, picture.Axis{From: from, To: to})
	for y, spans := range map[string]int{"25": 3, "47": 1, "69": 1} {
		require.Equal(t, spans, strings.Count(lines, `y="`+y+`" width`), lines)
	}
	svg := picture.Calendar("the last day", 800, lanes, axis)
	matches(t, "calendar", svg)
	require.NotContains(t, svg, "before")
	require.Equal(t, 4, strings.Count(svg, `<rect`))
	for _, empty := range []picture.Axis{{}, {From: from, To: from}, {From: to, To: from, Now: from}} {
		wellFormed(t, picture.Calendar("none", 300, lanes, empty))
	}
}
