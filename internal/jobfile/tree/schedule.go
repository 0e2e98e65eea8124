package tree

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Schedule is when a job is due, and with which parameters.
type Schedule struct {
	Cron    *schedule.Cron
	CatchUp schedule.CatchUp
	Overlap schedule.Overlap
	// Calendar has the due days; nil means all days.
	Calendar   *calendar.Calendar
	WhenClosed schedule.Closed

	Values []ScheduledParameter
}

// ScheduledParameter is the value of a parameter at the scheduled times.
type ScheduledParameter struct {
	Spec  core.ParameterSpec
	Place string
	Text  *template.Template
}

// Varies reports whether each scheduled time is another instance.
func (s *Schedule) Varies() bool {
	return slices.ContainsFunc(s.Values, func(p ScheduledParameter) bool { return p.Spec.Identifying && len(p.Text.Holes) > 0 })
}

// Parameters returns the texts of a run's parameters. An invalid value is among them, and a joined
// *ports.ParameterError.
func (s *Schedule) Parameters(at schedule.Time) (map[string]string, error) {
	texts := map[string]string{}
	var errs []error
	for _, p := range s.Values {
		text, _, err := p.Text.Evaluate(ScheduleValues(at))
		if err == nil {
			texts[p.Spec.Name] = text
			_, err = CheckedParameter(p.Spec, text)
		}
		if err != nil {
			errs = append(errs, &ports.ParameterError{Name: p.Spec.Name, Err: fmt.Errorf("%s: %w", p.Place, err)})
		}
	}
	return texts, errors.Join(errs...)
}

// CheckedParameter parses and checks the value of a parameter.
func CheckedParameter(spec core.ParameterSpec, text string) (any, error) {
	x, err := spec.Parse(text)
	if err != nil {
		return nil, err
	}
	return x, job.CheckParameter(spec, x)
}

// ScheduleName is the namespace of the scheduled time.
const ScheduleName = "schedule"

// ScheduleVars are the types of the names of a scheduled time.
func ScheduleVars() expression.Var {
	return expression.Var{Fields: map[string]expression.Var{
		"time": {Type: reflect.TypeFor[time.Time]()}, "key": {Type: reflect.TypeFor[string]()},
		"date": {Type: reflect.TypeFor[core.Date]()}, "previous_day": {Type: reflect.TypeFor[core.Date]()},
	}}
}

// ScheduleValues are the values of those names.
func ScheduleValues(at schedule.Time) map[string]any {
	date := core.Date(0).AddDays(int(at.Wall.Unix() / int64(24*time.Hour/time.Second)))
	return map[string]any{ScheduleName: map[string]any{
		"time": at.At, "key": at.Key, "date": date, "previous_day": date.AddDays(-1),
	}}
}
