package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	defaultTrend = 50
	mostTrend    = 100
)

// TrendRequest selects the last executions of a job.
type TrendRequest struct {
	Job string
	// Limit is at most 100; 0 means 50.
	Limit int
}

// JobTrend are the last executions of a job in numbers, without redrives.
type JobTrend struct {
	Job  string       `json:"job"`
	Runs []RunSummary `json:"runs" doc:"Newest first"`
	// Completed is the number of those in Runs that the typical values are of.
	Completed int      `json:"completed" doc:"Number of the completed executions in runs: the following are of these"`
	Duration  *Typical `json:"duration,omitempty" doc:"Median and 95th percentile, in seconds"`
	Rows      *Typical `json:"rows,omitempty" doc:"Of the rows that the steps read or, if they read none, wrote"`
	Skips     *Typical `json:"skipped,omitempty" doc:"Of the skipped items"`
}

// trends are the views of one job over its executions.
type trends struct {
	judge   *judge
	recent  *recent
	records interface {
		Executions(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecution, error)
	}
}

// Trend returns the last executions of a job; none if the history has none.
func (s *trends) Trend(ctx context.Context, req TrendRequest) (*JobTrend, error) {
	if err := s.judge.schema.Prepare(ctx); err != nil {
		return nil, err
	}
	switch {
	case req.Limit < 0 || req.Limit > mostTrend:
		return nil, &RequestError{Field: "limit", Value: fmt.Sprint(req.Limit), Reason: fmt.Sprintf("must be from 1 to %d", mostTrend)}
	case req.Limit == 0:
		req.Limit = defaultTrend
	}
	t := &JobTrend{Job: req.Job, Runs: []RunSummary{}}
	list, runs, err := s.recent.last(ctx, req.Limit, 0, req.Job)
	if err != nil {
		return nil, fmt.Errorf("the trend of job %s: %w", req.Job, err)
	}
	var completed []core.JobExecutionID
	for _, job := range list {
		for _, ref := range job.Newest {
			t.Runs = append(t.Runs, runSummary(ref, runs[ref.ID], s.judge.now()))
			if ref.Status == core.StatusCompleted {
				completed = append(completed, ref.ID)
			}
		}
	}
	var skips []float64
	for _, id := range completed {
		if run := runs[id]; run.Rows != nil {
			skips = append(skips, float64(run.Skips))
		}
	}
	t.Completed, t.Duration, t.Rows, t.Skips = len(completed), typicalOf(durations(completed, runs)), typicalOf(rowsOf(completed, runs)), typicalOf(skips)
	return t, nil
}

// CalendarRequest selects the instances of a job in a month.
type CalendarRequest struct {
	Job string
	// File is the job as it is now; nil means that only the history is known.
	File *jobfile.File
	// Param is an identifying parameter of type date; empty means the first one.
	Param string
	// Month is YYYY-MM; empty means the month of the newest execution.
	Month string
}

// JobCalendar are the instances of a job by a date parameter.
type JobCalendar struct {
	Job    string        `json:"job"`
	Params []string      `json:"params" doc:"The identifying parameters of type date, by which there is a calendar; without one there are no days"`
	Param  string        `json:"param,omitempty" doc:"The one of this calendar"`
	Month  string        `json:"month,omitempty" doc:"YYYY-MM"`
	Days   []CalendarDay `json:"days" doc:"All days of the month"`
}

// CalendarDay are the instances with a date.
type CalendarDay struct {
	Date      string `json:"date" doc:"YYYY-MM-DD"`
	Instances int    `json:"instances" doc:"Their number; 0 means that the job never ran for this date"`
	// Status is the most urgent one of the instances' newest executions.
	Status    core.Status         `json:"status,omitempty" doc:"Of the newest execution of the instance; of several instances, the first of: running, unknown, failed, stopped, abandoned, completed"`
	Execution core.JobExecutionID `json:"execution,omitempty" doc:"The execution with this status"`
	Attempts  int                 `json:"attempts,omitempty" doc:"Executions of the instance with this status"`
	Partial   bool                `json:"partial,omitempty" doc:"So many executions of all jobs have this date that not all were read: there may be further instances"`
}

// Calendar returns the instances of a job by a date parameter.
func (s *trends) Calendar(ctx context.Context, req CalendarRequest) (*JobCalendar, error) {
	if err := s.judge.schema.Prepare(ctx); err != nil {
		return nil, err
	}
	last, err := s.records.Executions(ctx, ports.ExecutionFilter{JobName: req.Job, Limit: 1, Brief: true})
	if err != nil {
		return nil, fmt.Errorf("the calendar of job %s: %w", req.Job, err)
	}
	c := &JobCalendar{Job: req.Job, Params: dateParameters(req.File, last), Days: []CalendarDay{}}
	if c.Param = req.Param; req.Param == "" && len(c.Params) > 0 {
		c.Param = c.Params[0]
	}
	if req.Param != "" && !slices.Contains(c.Params, req.Param) {
		return nil, &RequestError{Field: "param", Value: req.Param, Reason: "job " + req.Job + " has no identifying parameter of type date with this name", Allowed: c.Params}
	}
	first, err := s.month(req.Month, c.Param, last)
	if err != nil || c.Param == "" || s.recent.records == nil {
		return c, err
	}
	c.Month = first.Format(monthForm)
	filter := ports.CalendarFilter{JobName: req.Job, Param: c.Param}
	for day := first; day.Month() == first.Month(); day = day.AddDate(0, 0, 1) {
		filter.Values = append(filter.Values, day.Format(time.DateOnly))
	}
	found, err := s.recent.records.Calendar(ctx, filter)
	if err != nil {
		return nil, err
	}
	for _, value := range filter.Values {
		c.Days = append(c.Days, calendarDay(value, found))
	}
	return c, nil
}

const monthForm = "2006-01"

// month is the first day of the requested month.
func (s *trends) month(text, param string, last []core.JobExecution) (time.Time, error) {
	if text != "" {
		first, err := time.Parse(monthForm, text)
		if err != nil || first.Year() < 1 {
			return first, &RequestError{Field: "month", Value: text, Reason: "not a month, such as 2026-11"}
		}
		return first, nil
	}
	for i := range last {
		for _, p := range last[i].Params.Identifying().All() {
			if p.Name != param {
				continue
			}
			if first, err := time.Parse(monthForm, p.Text()[:min(len(p.Text()), len(monthForm))]); err == nil {
				return first, nil
			}
		}
	}
	now := s.judge.now().UTC()
	return time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC), nil
}

// dateParameters are declared, or of the newest execution.
func dateParameters(file *jobfile.File, last []core.JobExecution) []string {
	names := []string{}
	add := func(name string, kind core.ParameterType, identifying bool) {
		if kind == core.TypeDate && identifying && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if file != nil {
		for _, p := range file.Parameters() {
			add(p.Name, p.Type, p.Identifying)
		}
	}
	for i := range last {
		for _, p := range last[i].Params.All() {
			add(p.Name, p.Type, p.Identifying)
		}
	}
	return names
}

// calendarDay reads the newest execution of each instance: the executions are sorted.
func calendarDay(value string, found ports.Calendar) CalendarDay {
	day := CalendarDay{Date: value, Partial: slices.Contains(found.Unread, value)}
	attempts := map[core.JobInstanceID]int{}
	var decides core.JobInstanceID
	for _, run := range found.Runs {
		if run.Value != value {
			continue
		}
		if attempts[run.Instance]++; attempts[run.Instance] > 1 {
			continue
		}
		day.Instances++
		if day.Execution == 0 || urgency(run.Status) < urgency(day.Status) {
			day.Execution, day.Status, decides = run.ID, run.Status, run.Instance
		}
	}
	day.Attempts = attempts[decides]
	return day
}

// urgency orders statuses: the first one is shown for several instances.
func urgency(s core.Status) int {
	if !s.IsOver() {
		return 0
	}
	return 1 + strings.Index("UNKNOWN FAILED STOPPED ABANDONED COMPLETED", string(s))
}
