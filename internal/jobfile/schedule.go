package jobfile

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Schedule is when a job is due, and with which parameters.
type Schedule struct {
	Cron    *schedule.Cron
	CatchUp schedule.CatchUp
	Overlap schedule.Overlap
	// Calendar has the business days on which Cron has times; nil means all days.
	Calendar   *calendar.Calendar
	WhenClosed schedule.Closed

	parameters []scheduledParameter
}

// scheduledParameter is the value of a parameter at the scheduled times.
type scheduledParameter struct {
	spec  core.ParameterSpec
	place string
	text  *template
}

func (m *budgetModel) budget() task.Budget {
	if m == nil {
		return task.Budget{}
	}
	return task.Budget{
		MaxAttempts: valueOr0(m.MaxAttempts), MaxTotalAttempts: valueOr0(m.MaxTotalAttempts),
		Deadline: valueOr0(m.Deadline), MaxNoProgress: valueOr0(m.MaxNoProgress),
	}
}

func valueOr0[T any](p *T) (x T) {
	if p != nil {
		x = *p
	}
	return x
}

// Varies reports whether an identifying parameter depends on the scheduled time, so that each time is another
// instance.
func (s *Schedule) Varies() bool {
	return slices.ContainsFunc(s.parameters, func(p scheduledParameter) bool { return p.spec.Identifying && len(p.text.holes) > 0 })
}

// Parameters returns the texts of the scheduled parameters of a run, by name. A value that breaks the
// declaration of its parameter is a joined *core.ParameterError, and is among the texts.
func (s *Schedule) Parameters(at schedule.Time) (map[string]string, error) {
	texts := map[string]string{}
	var errs []error
	for _, p := range s.parameters {
		text, _, err := p.text.evaluate(scheduleValues(at))
		if err == nil {
			texts[p.spec.Name] = text
			_, err = checkedParameter(p.spec, text)
		}
		if err != nil {
			errs = append(errs, &core.ParameterError{Name: p.spec.Name, Err: fmt.Errorf("%s: %w", p.place, err)})
		}
	}
	return texts, errors.Join(errs...)
}

func checkedParameter(spec core.ParameterSpec, text string) (any, error) {
	x, err := spec.Parse(text)
	if err != nil {
		return nil, err
	}
	return x, job.CheckParameter(spec, x)
}

// scheduleName is the namespace of the scheduled time.
const scheduleName = "schedule"

func scheduleVars() expression.Var {
	return expression.Var{Fields: map[string]expression.Var{
		"time": {Type: reflect.TypeFor[time.Time]()}, "key": {Type: reflect.TypeFor[string]()},
		"date": {Type: reflect.TypeFor[core.Date]()}, "previous_day": {Type: reflect.TypeFor[core.Date]()},
	}}
}

func scheduleValues(at schedule.Time) map[string]any {
	date := core.Date(0).AddDays(int(at.Wall.Unix() / int64(24*time.Hour/time.Second)))
	return map[string]any{scheduleName: map[string]any{
		"time": at.At, "key": at.Key, "date": date, "previous_day": date.AddDays(-1),
	}}
}

// schedules checks the schedule of a file.
type schedules struct{ *parameters }

// checkSchedule checks `schedule`.
func (l *schedules) checkSchedule() {
	m := l.file.model.Schedule
	if m == nil || m.Node.Kind != yamlfile.Map { // reported
		return
	}
	s := &Schedule{CatchUp: schedule.CatchUp(m.CatchUp), Overlap: schedule.Overlap(m.Overlap)}
	zone, err := schedule.LoadZone(m.Timezone)
	if err != nil {
		l.problems.Add(m.Node.Get("timezone"), err.Error(), "")
		zone = time.UTC
	}
	if at := m.Node.Get("cron"); m.Cron != "" || at != nil && at.Kind == yamlfile.Scalar && !at.Empty && at.Text == "" {
		if s.Cron, err = schedule.Parse(m.Cron, zone); err != nil {
			l.problems.Add(at, err.Error(), "such as '30 2 * * *' (every day at 02:30), '*/15 * * * *' (every 15 minutes) or '0 6 * * MON-FRI'")
		}
	}
	l.checkScheduleCalendar(s)
	l.checkScheduledParameters(s)
	l.file.schedule = s
}

// checkScheduleCalendar puts the schedule on the business days of its calendar.
func (l *schedules) checkScheduleCalendar(s *Schedule) {
	m := l.file.model.Schedule
	if m.Calendar == "" {
		if m.Node.Get("when_closed") != nil {
			l.problems.Add(m.Node.KeyOf("when_closed"), "when_closed is for a schedule with a calendar", "add calendar: TARGET, or one of the job's calendars")
		}
		return
	}
	all := calendar.Stock()
	maps.Copy(all, l.file.clock.calendars)
	if s.Calendar = all[m.Calendar]; s.Calendar == nil {
		l.problems.Add(m.Node.Get("calendar"), "schedule: there is no calendar "+m.Calendar, yamlfile.Suggest(m.Calendar, slices.Sorted(maps.Keys(all))))
		return
	}
	s.WhenClosed = schedule.Closed(m.WhenClosed)
	if s.Cron == nil || s.WhenClosed != schedule.ClosedSkip && s.WhenClosed != schedule.ClosedNext {
		return // reported
	}
	on, err := s.Cron.On(s.Calendar, s.WhenClosed)
	if err != nil {
		l.problems.Add(m.Node.Get("calendar"), "schedule: "+err.Error(), "")
		return
	}
	if on.Next(l.now()).At.IsZero() {
		l.problems.Add(m.Node.Get("calendar"), "schedule: no time of the cron expression is on a business day of "+m.Calendar+" that the calendar knows of",
			"choose other days, when_closed: next, or add the holidays of the coming years and a later `until`")
	}
	s.Cron = on
}

func (l *schedules) checkScheduledParameters(s *Schedule) {
	m := l.file.model.Schedule
	given := map[string]bool{}
	for _, e := range m.Parameters {
		given[e.Name] = true
		spec, declared := l.spec(e.Name)
		switch {
		case !declared:
			l.problems.Add(e.Key, "schedule: the job has no parameter "+e.Name, yamlfile.Suggest(e.Name, l.file.model.Parameters.Names()))
		case spec.Secret:
			l.problems.Add(e.Key, "schedule: the parameter "+e.Name+" is secret: what a schedule gives is stored", fmt.Sprintf("leave it out, and give the workers the secret %s: the variable %s, a file or a command", e.Name, secret.Variable(e.Name)))
		case e.Value.node != nil:
			if text, ok := l.scheduledText(s, spec, e.Value.node); ok {
				s.parameters = append(s.parameters, scheduledParameter{spec: spec, place: l.file.location(e.Value.node), text: text})
			}
		}
	}
	for _, spec := range l.file.specs {
		if spec.Required && !spec.Secret && !given[spec.Name] {
			l.problems.Add(m.Node.KeyOf("parameters"), fmt.Sprintf("schedule: the job's parameter %s has no value", spec.Name),
				fmt.Sprintf("give it one: parameters: {%s: \"${schedule.date}\"}, or a default", spec.Name))
		}
	}
}

func (l *schedules) spec(name string) (core.ParameterSpec, bool) {
	for _, spec := range l.file.specs {
		if spec.Name == name {
			return spec, true
		}
	}
	return core.ParameterSpec{}, false
}

// scheduledText compiles the value of a parameter. A value that depends on the scheduled time is tried with
// the next one: whether it can be parsed does not depend on the time; whether it is within the parameter's
// limits may.
func (l *schedules) scheduledText(s *Schedule, spec core.ParameterSpec, n *yamlfile.Node) (*template, bool) {
	t, err := parseTemplate(n.Text)
	if err != nil {
		reportTemplate(l.problems, n, "schedule", err)
		return nil, false
	}
	scope := expression.Scope{scheduleName: scheduleVars()}
	l.file.clock.addTo(scope)
	if !l.compileParameter(spec, n, t, &names{scope: scope}) {
		return nil, false
	}
	if len(t.holes) == 0 {
		if _, err := checkedParameter(spec, t.literal()); err != nil {
			l.problems.Add(n, "schedule: parameter "+spec.Name+": "+err.Error(), "")
			return nil, false
		}
		return t, true
	}
	if s.Cron == nil {
		return nil, false // reported
	}
	next := s.Cron.Next(l.now())
	if next.At.IsZero() {
		return nil, false // reported
	}
	text, h, err := t.evaluate(scheduleValues(next))
	if err != nil {
		l.problems.AddAt(n, h.offset, fmt.Sprintf("${%s}: %v", h.text, err), "")
		return nil, false
	}
	_, ok := l.typed(&spec, n, text)
	return t, ok
}

func (l *checker) checkBudget(m *budgetModel) {
	if m == nil {
		return
	}
	l.checkAtLeastOne(m.Node, "max_attempts", m.MaxAttempts)
	l.checkAtLeastOne(m.Node, "max_total_attempts", m.MaxTotalAttempts)
	l.checkAtLeastOne(m.Node, "max_no_progress", m.MaxNoProgress)
	l.checkPositive(m.Node, "deadline", m.Deadline)
}

// The words of `exclusive`.
const (
	exclusiveInstance = "instance"
	exclusiveJob      = "job"
)

const exclusiveHint = "write instance, job, or an expression over the parameters such as params.region"

// checkExclusive checks `exclusive`: a word, or an expression over the parameters.
func (l *scopes) checkExclusive() {
	m := l.file.model.Exclusive
	if m == nil || m.text == exclusiveInstance || m.text == exclusiveJob {
		return
	}
	if strings.HasPrefix(strings.TrimSpace(m.text), "${") {
		l.problems.Add(m.node, "exclusive is an expression itself, without ${ }", "write "+strings.Trim(strings.TrimSpace(m.text), "${} "))
		return
	}
	scope := expression.Scope{"params": {Fields: l.paramVars()}}
	l.file.clock.addTo(scope)
	prog, err := expression.Compile(m.text, scope)
	var where *expression.Error
	switch {
	case errors.As(err, &where):
		l.problems.AddAt(m.node, where.Offset, "exclusive: "+err.Error(), exclusiveHint)
	case err != nil:
		l.problems.Add(m.node, "exclusive: "+err.Error(), exclusiveHint)
	case prog.Nullable():
		l.problems.Add(m.node, "exclusive may be null", "give it a value for that case: "+m.text+" ?? ''")
	case typeName(prog.Type()) == "":
		l.problems.Add(m.node, "exclusive: the key is no text, number, date or bool", exclusiveHint)
	default:
		l.file.exclusive = prog
	}
}

// exclusiveKey returns the key that a launch with these parameters shares with the launches that must not run at
// the same time; "" means that it excludes only its own instance.
func exclusiveKey(f *fileDef, params core.Parameters) (core.ExclusiveKey, error) {
	switch m := f.model.Exclusive; {
	case m == nil || m.text == exclusiveInstance:
		return "", nil
	case m.text == exclusiveJob:
		return core.ExclusiveJob, nil
	}
	x, err := f.exclusive.Eval(f.launchValues(params).vars)
	if err == nil {
		key := core.ExclusiveBy(textOf(x))
		if err = key.Check(); err == nil {
			return key, nil
		}
	}
	return "", fmt.Errorf("%s: exclusive: %w", f.location(f.model.Exclusive.node), err)
}
