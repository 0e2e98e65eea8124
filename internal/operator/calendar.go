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

// CalendarRequest selects the instances of a job by the values of a parameter: of a month, or a range.
type CalendarRequest struct {
	Job string
	// File is the job as it is now; nil means that only the history is known.
	File *jobfile.File
	// Param is an identifying parameter of type date, or int for a range; empty means the first one.
	Param string
	// Month is YYYY-MM; empty means the month of the newest execution.
	Month string
	// From and To, both included, are a range in place of the month.
	From, To string
}

func (r CalendarRequest) isRange() bool { return r.From != "" || r.To != "" }

// JobCalendar are the instances of a job by the values of a parameter.
type JobCalendar struct {
	Job    string        `json:"job"`
	Params []string      `json:"params" doc:"The identifying parameters by which there is a calendar, of type date, or int for a range; without one there are no days"`
	Param  string        `json:"param,omitempty" doc:"The one of this calendar"`
	Month  string        `json:"month,omitempty" doc:"YYYY-MM, unless it is a range"`
	Days   []CalendarDay `json:"days" doc:"All days of the month, or all values of the range"`
	// Missing leaves out the days that are not known as a whole.
	Missing []string `json:"missing" doc:"The values that never ran"`
}

// CalendarDay are the instances with a value, such as a date.
type CalendarDay struct {
	Value     string `json:"value" doc:"YYYY-MM-DD, or a number"`
	Instances int    `json:"instances" doc:"Their number; 0 means that the job never ran for this value"`
	// Status is the most urgent one of the instances' newest executions.
	Status    core.Status         `json:"status,omitempty" doc:"Of the newest execution of the instance; of several instances, the first of: running, unknown, failed, stopped, abandoned, completed"`
	Execution core.JobExecutionID `json:"execution,omitempty" doc:"The execution with this status"`
	Attempts  int                 `json:"attempts,omitempty" doc:"Executions of the instance with this status"`
	Partial   bool                `json:"partial,omitempty" doc:"So many executions of all jobs have this value that not all were read: there may be further instances"`
}

// Calendar returns the instances of a job by the values of a parameter.
func (s *trends) Calendar(ctx context.Context, req CalendarRequest) (*JobCalendar, error) {
	if err := s.judge.schema.Prepare(ctx); err != nil {
		return nil, err
	}
	last, err := s.records.Executions(ctx, ports.ExecutionFilter{JobName: req.Job, Limit: 1, Brief: true})
	if err != nil {
		return nil, fmt.Errorf("the calendar of job %s: %w", req.Job, err)
	}
	kinds := rangeParameters(req.File, last)
	c := &JobCalendar{Job: req.Job, Params: []string{}, Days: []CalendarDay{}, Missing: []string{}}
	for _, p := range kinds {
		if p.Type == core.TypeDate || req.isRange() {
			c.Params = append(c.Params, p.Name)
		}
	}
	if c.Param = req.Param; req.Param == "" && len(c.Params) > 0 {
		c.Param = c.Params[0]
	}
	at := slices.IndexFunc(kinds, func(p core.ParameterSpec) bool { return p.Name == c.Param && slices.Contains(c.Params, c.Param) })
	if at < 0 && (req.Param != "" || req.isRange()) {
		kind := "date"
		if req.isRange() {
			kind = "date or int"
		}
		return nil, &RequestError{Field: "param", Value: req.Param, Reason: "job " + req.Job + " has no identifying parameter of type " + kind + " with this name", Allowed: c.Params}
	}
	filter := ports.CalendarFilter{JobName: req.Job, Param: c.Param}
	if req.isRange() {
		filter.Values, err = valuesBetween(kinds[at].Type, req.From, req.To, 1, maxDays)
	} else {
		c.Month, filter.Values, err = s.month(req.Month, c.Param, last)
	}
	if err != nil || c.Param == "" || s.recent.records == nil {
		c.Month = ""
		return c, err
	}
	found, err := s.recent.records.Calendar(ctx, filter)
	if err != nil {
		return nil, err
	}
	c.fill(filter.Values, found)
	return c, nil
}

func (c *JobCalendar) fill(values []string, found ports.Calendar) {
	ran := map[string][]ports.CalendarRun{}
	for _, run := range found.Runs {
		ran[run.Value] = append(ran[run.Value], run)
	}
	for _, value := range values {
		day := calendarDay(value, ran[value])
		if day.Partial = slices.Contains(found.Unread, value); day.Instances == 0 && !day.Partial {
			c.Missing = append(c.Missing, value)
		}
		c.Days = append(c.Days, day)
	}
}

const monthForm = "2006-01"

// month is the requested month with its days.
func (s *trends) month(text, param string, last []core.JobExecution) (string, []string, error) {
	first, err := s.firstOf(text, param, last)
	if err != nil {
		return "", nil, err
	}
	var days []string
	for day := first; day.Month() == first.Month(); day = day.AddDate(0, 0, 1) {
		days = append(days, day.Format(time.DateOnly))
	}
	return first.Format(monthForm), days, nil
}

// firstOf is the first day of the requested month.
func (s *trends) firstOf(text, param string, last []core.JobExecution) (time.Time, error) {
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

// rangeParameters are identifying, of type date or int, and declared, or of the newest execution.
func rangeParameters(file *jobfile.File, last []core.JobExecution) []core.ParameterSpec {
	var list []core.ParameterSpec
	add := func(name string, kind core.ParameterType, identifying bool) {
		known := slices.ContainsFunc(list, func(p core.ParameterSpec) bool { return p.Name == name })
		if (kind == core.TypeDate || kind == core.TypeInt) && identifying && !known {
			list = append(list, core.ParameterSpec{Name: name, Type: kind})
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
	return list
}

// calendarDay reads the newest execution of each instance: the executions are sorted.
func calendarDay(value string, ran []ports.CalendarRun) CalendarDay {
	day := CalendarDay{Value: value}
	attempts := map[core.JobInstanceID]int{}
	var decides core.JobInstanceID
	for _, run := range ran {
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
