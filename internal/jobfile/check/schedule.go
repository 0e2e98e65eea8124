package check

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type schedules struct{ *parameters }

func (l *schedules) checkSchedule() {
	m := l.file.Model.Schedule
	if m == nil || m.Node.Kind != yamlfile.Map { // reported
		return
	}
	s := &tree.Schedule{CatchUp: schedule.CatchUp(m.CatchUp), Overlap: schedule.Overlap(m.Overlap)}
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
	l.file.Schedule = s
}

func (l *schedules) checkScheduleCalendar(s *tree.Schedule) {
	m := l.file.Model.Schedule
	if m.Calendar == "" {
		if m.Node.Get("when_closed") != nil {
			l.problems.Add(m.Node.KeyOf("when_closed"), "when_closed is for a schedule with a calendar", "add calendar: TARGET, or one of the job's calendars")
		}
		return
	}
	all := calendar.Stock()
	maps.Copy(all, l.file.Clock.Calendars)
	if s.Calendar = all[m.Calendar]; s.Calendar == nil {
		l.problems.Add(m.Node.Get("calendar"), "schedule: calendar "+m.Calendar+" is not declared", yamlfile.Suggest(m.Calendar, slices.Sorted(maps.Keys(all))))
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

func (l *schedules) checkScheduledParameters(s *tree.Schedule) {
	m := l.file.Model.Schedule
	given := map[string]bool{}
	for _, e := range m.Parameters {
		given[e.Name] = true
		i := slices.IndexFunc(l.file.Specs, func(s core.ParameterSpec) bool { return s.Name == e.Name })
		if i < 0 {
			l.problems.Add(e.Key, "schedule: the job has no parameter "+e.Name, yamlfile.Suggest(e.Name, l.file.Model.Parameters.Names()))
			continue
		}
		switch spec := l.file.Specs[i]; {
		case spec.Secret:
			l.problems.Add(e.Key, "schedule: the parameter "+e.Name+" is secret: the values of a schedule are stored", fmt.Sprintf("leave it out, and give the workers the secret %s: the variable %s, a file or a command", e.Name, secret.Variable(e.Name)))
		case e.Value.Node != nil:
			if text, ok := l.scheduledText(s, spec, e.Value.Node); ok {
				s.Values = append(s.Values, tree.ScheduledParameter{Spec: spec, Place: l.file.Place(e.Value.Node), Text: text})
			}
		}
	}
	for _, spec := range l.file.Specs {
		if spec.Required && !spec.Secret && !given[spec.Name] {
			l.problems.Add(m.Node.KeyOf("parameters"), fmt.Sprintf("schedule: the job's parameter %s has no value", spec.Name),
				fmt.Sprintf("give it one: parameters: {%s: \"${schedule.date}\"}, or a default", spec.Name))
		}
	}
}

func (l *schedules) scheduledText(s *tree.Schedule, spec core.ParameterSpec, n *yamlfile.Node) (*template.Template, bool) {
	t, err := template.Parse(n.Text)
	if err != nil {
		template.Report(l.problems, n, "schedule", err)
		return nil, false
	}
	scope := expression.Scope{tree.ScheduleName: tree.ScheduleVars()}
	l.file.Clock.AddTo(scope)
	if !l.compileParameter(spec, n, t, &template.Names{Scope: scope}) {
		return nil, false
	}
	if len(t.Holes) == 0 {
		if _, err := tree.CheckedParameter(spec, t.Literal()); err != nil {
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
	text, h, err := t.Evaluate(tree.ScheduleValues(next))
	if err != nil {
		l.problems.AddAt(n, h.Offset, fmt.Sprintf("${%s}: %v", h.Text, err), "")
		return nil, false
	}
	_, ok := l.typed(&spec, n, text)
	return t, ok
}

func (l *checker) checkBudget(m *language.Budget) {
	if m == nil {
		return
	}
	l.checkAtLeastOne(m.Node, "max_attempts", m.MaxAttempts)
	l.checkAtLeastOne(m.Node, "max_total_attempts", m.MaxTotalAttempts)
	l.checkAtLeastOne(m.Node, "max_no_progress", m.MaxNoProgress)
	l.checkPositive(m.Node, "deadline", m.Deadline)
}

const exclusiveHint = "write instance, job, or an expression over the parameters such as params.region"

func (l *scopes) checkExclusive() {
	m := l.file.Model.Exclusive
	if m == nil || m.Text == language.ExclusiveInstance || m.Text == language.ExclusiveJob {
		return
	}
	if strings.HasPrefix(strings.TrimSpace(m.Text), "${") {
		l.problems.Add(m.Node, "exclusive is an expression itself, without ${ }", "write "+strings.Trim(strings.TrimSpace(m.Text), "${} "))
		return
	}
	scope := expression.Scope{"params": {Fields: l.paramVars()}}
	l.file.Clock.AddTo(scope)
	prog, err := expression.Compile(m.Text, scope)
	var where *expression.Error
	switch {
	case errors.As(err, &where):
		l.problems.AddAt(m.Node, where.Offset, "exclusive: "+err.Error(), exclusiveHint)
	case err != nil:
		l.problems.Add(m.Node, "exclusive: "+err.Error(), exclusiveHint)
	case prog.Nullable():
		l.problems.Add(m.Node, "exclusive may be null", "give it a value for that case: "+m.Text+" ?? ''")
	case template.TypeName(prog.Type()) == "":
		l.problems.Add(m.Node, "exclusive: the key is not a text, number, date or bool", exclusiveHint)
	default:
		l.file.Exclusive = prog
	}
}
