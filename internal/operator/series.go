package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/series"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// SeriesRequest names an execution, and a step of it.
type SeriesRequest struct {
	Execution core.JobExecutionID `json:"execution"`
	// Step is a step or one of its parts, STEP:PART; empty means all steps.
	Step string `json:"step,omitempty"`
}

// NoStepError: the execution has not run the step. It is a core.ErrNotFound.
type NoStepError struct {
	Execution core.JobExecutionID
	Step      string
	Known     []string
}

// Error names the step that is probably intended.
func (e *NoStepError) Error() string {
	return fmt.Sprintf("execution %d has run no step %s%s", e.Execution, e.Step, nearest.Hint(e.Step, e.Known))
}

func (e *NoStepError) Unwrap() error { return core.ErrNotFound }

// SeriesView has the committed counters of an execution over time.
type SeriesView struct {
	Execution core.JobExecutionID `json:"execution"`
	JobName   string              `json:"job"`
	Status    core.Status         `json:"status"`
	Attempt   int                 `json:"attempt"`
	// Whole adds the steps up; nil if one step was requested.
	Whole *StepSeries `json:"whole,omitempty"`
	// Steps are in the order in which they began.
	Steps []StepSeries `json:"steps"`
	// Cut means that only the first 20,000 step executions are added up.
	Cut bool `json:"cut,omitempty"`
}

// StepSeries has the counters of a step, of one part, or of all steps, over time.
type StepSeries struct {
	Step string `json:"step,omitempty"`
	// Executions is the number of step executions that are added up: rounds and parts.
	Executions int       `json:"step_executions"`
	Started    time.Time `json:"started,omitzero"`
	Ended      time.Time `json:"ended,omitzero"`
	// Interval is the time between two points in seconds, but to the first and the last; 0 means as they were sampled.
	Interval float64       `json:"interval,omitempty"`
	Points   []SeriesPoint `json:"points"`
}

// SeriesPoint has the counters that this attempt had committed at a time.
type SeriesPoint struct {
	At        time.Time `json:"at"`
	Read      int64     `json:"read"`
	Written   int64     `json:"written"`
	Filtered  int64     `json:"filtered"`
	Skipped   int64     `json:"skipped"`
	Commits   int64     `json:"commits"`
	Rollbacks int64     `json:"rollbacks"`
	// RowsPerSecond is since the point before. Rows written count if the step reads none.
	RowsPerSecond float64 `json:"rows_per_second"`
}

type curves struct {
	records seriesRecords
	now     func() time.Time
}

type seriesRecords interface {
	Judged(ctx context.Context, req ports.JudgedRequest) ([]ports.JudgedExecution, error)
	SampledSteps(ctx context.Context, req ports.SampledRequest) ([]ports.SampledStep, error)
}

const (
	seriesPage = 500
	// maxSampled bounds the step executions of a series.
	maxSampled = 20_000
)

// Series returns the counters of an execution over time, or core.ErrNotFound, for a step a *NoStepError.
func (s *curves) Series(ctx context.Context, req SeriesRequest) (*SeriesView, error) {
	exec, err := seen(ctx, s.records, req.Execution)
	if err != nil {
		return nil, fmt.Errorf("execution %d: %w", req.Execution, err)
	}
	view := &SeriesView{Execution: exec.ID, JobName: exec.JobName, Status: exec.Status, Attempt: exec.Attempt, Steps: []StepSeries{}}
	t := &tally{records: s.records, request: req, from: exec.StartedAt, to: orNow(exec.EndedAt, s.now()), managers: map[core.StepExecutionID]string{}}
	if req.Step != "" {
		if err := t.confine(ctx); err != nil {
			return nil, err
		}
	}
	if t.from.IsZero() { // it has not begun
		return view, nil
	}
	if err := t.add(ctx); err != nil {
		return nil, err
	}
	view.Cut = t.cut
	for _, l := range t.steps {
		view.Steps = append(view.Steps, l.view(t))
	}
	if req.Step == "" {
		whole := t.whole().view(t)
		view.Whole = &whole
	}
	return view, nil
}

func orNow(at, now time.Time) time.Time {
	if at.IsZero() {
		return now.UTC()
	}
	return at
}

// tally adds the steps of an execution up, page by page, within a time.
type tally struct {
	records  seriesRecords
	request  SeriesRequest
	from, to time.Time
	managers map[core.StepExecutionID]string // the names of steps with parts
	steps    []*line
	room     []series.Sample // of the line that is read
	cut      bool
}

// line adds the executions of one step up.
type line struct {
	step           string
	started, ended time.Time
	executions     int
	open           bool
	sum            *series.Sum
	// only is the line of a single execution, as it was sampled.
	begin time.Time
	only  []series.Sample
}

// each calls f with the executions of the requested step, or of all; for a step with parts, with the parts.
func (t *tally) each(ctx context.Context, brief bool, f func(step string, s *ports.SampledStep) error) (names []string, err error) {
	read := 0
	for after := core.StepExecutionID(0); ; {
		page, err := t.records.SampledSteps(ctx, ports.SampledRequest{Execution: t.request.Execution, After: after, Brief: brief, Limit: seriesPage})
		if err != nil {
			return nil, err
		}
		for i := range page {
			s := &page[i]
			if s.IsBranch || isPlanned(s) {
				continue
			}
			step := s.Name
			if s.HasParts {
				t.managers[s.ID] = s.Name
			}
			if s.Manager != 0 {
				step = t.managers[s.Manager]
			}
			if !slices.Contains(names, step) {
				names = append(names, step)
			}
			if t.request.Step == s.Name {
				step = s.Name
			}
			if s.HasParts && !brief || t.request.Step != "" && t.request.Step != step {
				continue
			}
			if err := f(step, s); err != nil {
				return nil, err
			}
		}
		read += len(page)
		if len(page) < seriesPage {
			return names, nil
		}
		if read >= maxSampled {
			t.cut = true
			return names, nil
		}
		after = page[len(page)-1].ID
	}
}

// isPlanned reports whether the part has not begun.
func isPlanned(s *ports.SampledStep) bool {
	return s.StartedAt.IsZero() || s.Status == core.StatusStarting && s.Committed == (core.Counters{})
}

// confine limits the time of the tally to the requested step.
func (t *tally) confine(ctx context.Context) error {
	to := t.to
	found := false
	names, err := t.each(ctx, true, func(_ string, s *ports.SampledStep) error {
		if !found || s.StartedAt.Before(t.from) {
			t.from = s.StartedAt
		}
		if ended := orNow(s.EndedAt, to); !found || ended.After(t.to) {
			t.to = ended
		}
		found = true
		return nil
	})
	if err == nil && !found {
		err = &NoStepError{Execution: t.request.Execution, Step: t.request.Step, Known: names}
	}
	return err
}

func (t *tally) add(ctx context.Context) error {
	_, err := t.each(ctx, false, func(step string, s *ports.SampledStep) error {
		begin, samples, err := t.line(s)
		if err != nil {
			return fmt.Errorf("step execution %d: %w", s.ID, err)
		}
		i := slices.IndexFunc(t.steps, func(l *line) bool { return l.step == step })
		if i < 0 {
			i, t.steps = len(t.steps), append(t.steps, &line{step: step, started: begin, sum: series.NewSum(t.from, t.to)})
		}
		t.steps[i].add(s, begin, samples)
		return nil
	})
	return err
}

func (l *line) add(s *ports.SampledStep, begin time.Time, samples []series.Sample) {
	l.executions++
	l.sum.Add(begin, samples)
	if begin.Before(l.started) {
		l.started = begin
	}
	if s.EndedAt.After(l.ended) {
		l.ended = s.EndedAt
	}
	l.open = l.open || s.EndedAt.IsZero()
	if l.executions == 1 {
		l.begin, l.only = begin, slices.Clone(samples)
	}
}

// line returns the samples of a step execution with its begin and its end, until the next one is read. It ends with the counters of its
// row: at its end, or now, or soon after its last sample if its process was killed.
func (t *tally) line(s *ports.SampledStep) (begin time.Time, samples []series.Sample, err error) {
	samples, err = series.AppendDecoded(append(t.room[:0], series.Sample{}), s.Samples)
	if err != nil {
		return begin, nil, err
	}
	stored := len(samples) - 1
	end := orNow(s.EndedAt, t.to)
	if end.After(t.to) {
		end = t.to
	}
	begin = s.StartedAt
	switch shortest := end.Add(-job.DefaultHeartbeat); {
	case stored > 0:
		begin = s.Since
	case s.Manager != 0 && begin.Before(shortest):
		begin = shortest // it waited for its worker, which had it for less than a heartbeat
	}
	took := max(end.Sub(begin), 0)
	for i := range samples {
		samples[i].At = min(samples[i].At, took)
	}
	last, final := samples[len(samples)-1], s.Committed
	if final.Commit < last.Counters.Commit { // its chunks are in another database, and the history follows
		final = last.Counters
	}
	if strings.HasPrefix(s.Error, ports.LostOwner) && stored > 0 && final != last.Counters {
		gap := last.At / time.Duration(stored)
		last = series.Sample{At: min(last.At+gap, took), Counters: final}
		samples = append(samples, last)
	}
	t.room = append(samples, series.Sample{At: took, Counters: final})
	return begin, t.room, nil
}

// whole adds the steps up.
func (t *tally) whole() *line {
	w := &line{started: t.from, ended: t.to, sum: series.NewSum(t.from, t.to)}
	for _, l := range t.steps {
		w.sum.Add(t.from, l.sum.Samples(t.to))
		w.executions += l.executions
		w.open = w.open || l.open
	}
	return w
}

func (l *line) view(t *tally) StepSeries {
	v := StepSeries{Step: l.step, Executions: l.executions, Started: utc(l.started)}
	if !l.open {
		v.Ended = utc(l.ended)
	}
	if t.request.Step != "" && l.executions == 1 && len(l.only) <= series.Most {
		v.Points = pointsOf(l.begin, l.only)
		return v
	}
	samples := l.sum.Samples(t.to)
	v.Interval = l.sum.Every().Seconds()
	first, last := 0, len(samples)
	for first+1 < last && !t.from.Add(samples[first+1].At).After(l.started) {
		first++
	}
	for !l.open && last-2 > first && !t.from.Add(samples[last-2].At).Before(l.ended) {
		last--
	}
	samples = samples[first:last]
	samples[0].At = max(samples[0].At, l.started.Sub(t.from))
	if end := &samples[len(samples)-1]; !l.open {
		end.At = min(end.At, l.ended.Sub(t.from))
	}
	v.Points = pointsOf(t.from, samples)
	return v
}

func pointsOf(from time.Time, samples []series.Sample) []SeriesPoint {
	list := make([]SeriesPoint, len(samples))
	reads := len(samples) > 0 && samples[len(samples)-1].Counters.Read > 0
	for i, s := range samples {
		c := s.Counters
		list[i] = SeriesPoint{
			At: utc(from.Add(s.At)), Read: c.Read, Written: c.Write, Filtered: c.Filter, Skipped: c.Skips(), Commits: c.Commit, Rollbacks: c.Rollback,
		}
		if i == 0 {
			continue
		}
		since := c.Sub(samples[i-1].Counters)
		rows := since.Write
		if reads {
			rows = since.Read
		}
		if took := (s.At - samples[i-1].At).Seconds(); took > 0 {
			list[i].RowsPerSecond = float64(int64(10*float64(rows)/took)) / 10
		}
	}
	return list
}
