package picture_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/picture"
)

func TestStripsCurvesAndLanesAreDrawn(t *testing.T) {
	t.Parallel()
	matches(t, "strip", picture.Strip("the last 3 runs of job load", []picture.Bar{
		{Value: 12, Class: "completed", Mark: "✓", Title: "execution 1, COMPLETED, 12s", Link: "/executions/1"}, {Value: 0, Class: "failed", Mark: "✗"}, {Value: 30, Class: "started"},
	}))
	matches(t, "curve", picture.Curve("rows", 300, 100, []picture.Series{
		{Points: []picture.Point{{0, 0}, {1, 10}, {2, 40}}}, {Class: "pale", Points: []picture.Point{{1, 20}}}, {},
	}, "10:00", "10:02", "40"))
	matches(t, "trend", picture.Trend("duration of the last runs", []picture.Bar{
		{Value: 10, Class: "completed", Link: "/executions/1"}, {Value: 3, Class: "failed", Mark: "✕"}, {Value: 12, Class: "completed"},
	}, []picture.Level{{Value: 11, Label: "median 11s", Class: "median"}, {Value: 12, Label: "95% 12s", Class: "p95"}}))
	wellFormed(t, picture.Trend("none", nil, nil))
	at := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	clock := func(t time.Time) string { return t.Format("15:04:05") }
	matches(t, "lanes", picture.Lanes("time line", 800, []picture.Lane{
		{Name: "attempt 1", Spans: []picture.Span{{Begin: at, End: at.Add(time.Minute), Class: "failed", Text: "load"}}},
		{Name: "worker-a", Link: "/workers/a", Spans: []picture.Span{{Begin: at.Add(10 * time.Second), Class: "started", Text: "part 7"}}},
	}, at, at.Add(2*time.Minute), at.Add(90*time.Second), clock))
	for _, between := range []time.Duration{0, time.Millisecond, time.Second, time.Hour, 24 * time.Hour, 3650 * 24 * time.Hour} {
		svg := picture.Lanes("x", 800, nil, at, at.Add(between), at, clock)
		wellFormed(t, svg)
	}
	require.NotContains(t, picture.Strip("none", nil), "NaN")
	wellFormed(t, picture.Curve("none", 10, 10, nil, "", "", ""))
}
