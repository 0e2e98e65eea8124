package cli

import (
	"context"
	"errors"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
)

// curveWidth leaves room for the other columns in a line of 80.
const curveWidth = 32

func showSeries(ctx context.Context, env *environment, req operator.SeriesRequest) error {
	var series *operator.SeriesView
	err := env.view(ctx, req.Execution, func(s *Session) (err error) {
		series, err = s.Service.Series(ctx, req)
		if unknown, is := errors.AsType[*operator.NoStepError](err); is {
			return usagef("%v", unknown)
		}
		return err
	})
	if err != nil {
		return err
	}
	if env.format == formatJSON {
		return env.printJSON(series)
	}
	text := headline(operator.Execution{JobName: series.JobName, ID: series.Execution, Attempt: series.Attempt, Status: series.Status}) + "\n\n"
	rows := make([][]string, 0, len(series.Steps)+1)
	for _, s := range series.Steps {
		rows = append(rows, seriesRow(s.Step, s))
	}
	if series.Whole != nil && len(series.Steps) > 1 {
		rows = append(rows, seriesRow("whole", *series.Whole))
	}
	return env.print(text + renderTable([]column{
		{title: "step"}, {title: "rows", right: true}, {title: "duration", right: true}, {title: "rows/s", right: true},
		{title: "fastest", right: true}, {title: "speed over time"},
	}, rows))
}

func seriesRow(name string, s operator.StepSeries) []string {
	var rows int64
	var took float64
	if n := len(s.Points); n > 0 {
		first, last := s.Points[0], s.Points[n-1]
		if rows = last.Read; rows == 0 {
			rows = last.Written
		}
		took = last.At.Sub(first.At).Seconds()
	}
	mean, highest := "-", "-"
	curve, fastest := wording.Speed(s.Points, curveWidth)
	if rows > 0 && took > 0 {
		mean, highest = humanize.Count(int64(float64(rows)/took)), humanize.Count(int64(fastest))
	}
	return []string{name, humanize.Count(rows), humanize.Seconds(took), mean, highest, curve}
}
