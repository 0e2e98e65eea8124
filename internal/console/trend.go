package console

import (
	"html/template"
	"slices"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/picture"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type trendView struct {
	Curves []trendCurve
	Runs   []trendRun
}

type trendCurve struct {
	Name, Median, Slowest string
	Picture               template.HTML
}

type trendRun struct {
	link
	Status              statusView
	Started             moment
	Took, Rows, Skipped string
}

// trend is nil for a job with less than two runs.
func (v ofJob) trend(name string) (*trendView, error) {
	found, err := v.Service.Trend(v.r.Context(), operator.TrendRequest{Job: name})
	const least = 2
	if err != nil || len(found.Runs) < least {
		return nil, err
	}
	count := func(n float64) string { return humanize.Count(int64(n)) }
	orNone := func(n *int64) float64 {
		if n == nil {
			return 0
		}
		return float64(*n)
	}
	view := &trendView{Curves: []trendCurve{
		v.trendCurve("Duration", found, found.Duration, humanize.Seconds, func(r *operator.RunSummary) float64 { return r.Duration }),
		v.trendCurve("Rows", found, found.Rows, count, func(r *operator.RunSummary) float64 { return orNone(r.Rows) }),
		v.trendCurve("Skipped items", found, found.Skips, count, func(r *operator.RunSummary) float64 { return orNone(r.Skips) }),
	}}
	for i := range found.Runs {
		r := &found.Runs[i]
		view.Runs = append(view.Runs, trendRun{
			v.executionLink(r.Execution), status(r.Status), v.moment(r.Started), humanize.Seconds(r.Duration), count(orNone(r.Rows)), count(orNone(r.Skips)),
		})
	}
	return view, nil
}

func (v ofJob) trendCurve(name string, found *operator.JobTrend, typical *operator.Typical, says func(float64) string, of func(*operator.RunSummary) float64) trendCurve {
	var bars []picture.Bar
	for i := range slices.Backward(found.Runs) {
		r := &found.Runs[i]
		s := stateOf(r.Status)
		mark := s.mark
		if r.Status == core.StatusCompleted {
			mark = "" // most are: the others are seen
		}
		bars = append(bars, picture.Bar{
			Value: of(r), Class: s.class, Mark: mark, Link: v.executionLink(r.Execution).Href,
			Title: "Execution " + id(r.Execution) + ": " + string(r.Status) + ", " + says(of(r)) + ", " + v.moment(r.Started).Text,
		})
	}
	c := trendCurve{Name: name}
	var levels []picture.Level
	if typical != nil {
		c.Median, c.Slowest = says(typical.Median), wording.Within(typical, says)
		levels = []picture.Level{{Value: typical.Median, Label: "median " + c.Median, Class: "median"}}
		if c.Slowest != "" {
			levels = append(levels, picture.Level{Value: typical.P95, Label: "95% " + c.Slowest, Class: "p95"})
		}
	}
	c.Picture = template.HTML(picture.Trend(name+" of the last runs, oldest first", bars, levels)) //nolint:gosec // the picture escapes its texts
	return c
}
