package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/jobfile/outline"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type flows struct {
	jobs    *jobs
	explain *explainer
	records interface {
		Executions(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecution, error)
	}
}

// JobFlow is the structure of a job as its file has it now.
type JobFlow struct {
	JobName string `json:"job"`
	outline.Job
}

// ExecutionFlow is the structure of a job as an execution had it, with the visits of the flow and the
// effect of a restart.
type ExecutionFlow struct {
	Execution core.JobExecutionID `json:"execution"`
	JobName   string              `json:"job"`
	Status    core.Status         `json:"status"`
	outline.Job
	// Problem is why there are no elements: this program does not understand the stored file.
	Problem string `json:"problem,omitempty"`
	// Visits of this attempt, and the last one of each earlier attempt to each element, in order.
	Visits []FlowVisit `json:"visits"`
	// Restart is as in an Explanation.
	Restart *RestartPlan `json:"restart,omitempty"`
}

// FlowVisit is a visit of an element, as the journal has it.
type FlowVisit struct {
	Element string `json:"element"`
	// Flow is the flow inside of a visited element: loadAll#3/1 is the second branch in its visit 3.
	Flow      string              `json:"flow,omitempty"`
	Ordinal   int64               `json:"ordinal"`
	Kind      ports.VisitKind     `json:"kind" enum:"step,noop,decision,flow,group,stop,jump,pass,adopt,turn"`
	Execution core.JobExecutionID `json:"execution"`
	Attempt   int                 `json:"attempt,omitempty"`
	// Step is the number of the step execution of a visit to a step, or of the one that was passed.
	Step   core.StepExecutionID `json:"step_execution,omitempty"`
	Status core.Status          `json:"status,omitempty"`
	Exit   string               `json:"exit,omitempty"`
	// Round is the number of the visit in a loop of this attempt, from 1; 0 if it is the only one.
	Round   int       `json:"round,omitempty"`
	Verdict string    `json:"verdict,omitempty"`
	Target  string    `json:"target,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
}

// JobFlow returns the structure of a job by its name, or of a loaded file.
func (s *flows) JobFlow(ctx context.Context, name string, loaded *jobfile.File) (*JobFlow, error) {
	d, err := s.jobs.find(ctx, jobSource{name: name, checked: loaded})
	if err != nil {
		return nil, err
	}
	if d.file == nil {
		return nil, &Refusal{Reason: refusal.File, Err: fmt.Errorf("job %s is built by the program and has no job file: its flow cannot be shown", name)}
	}
	return &JobFlow{JobName: d.file.Name(), Job: d.file.Outline()}, nil
}

// ExecutionFlow returns the structure of an execution's job with its visits, or core.ErrNotFound.
func (s *flows) ExecutionFlow(ctx context.Context, id core.JobExecutionID) (*ExecutionFlow, error) {
	p, err := s.explain.gather(ctx, id, nil)
	if err != nil {
		return nil, err
	}
	explained, err := p.explain(ctx)
	if err != nil {
		return nil, err
	}
	return s.flow(ctx, p, explained)
}

func (s *flows) flow(ctx context.Context, p *findings, explained *Explanation) (*ExecutionFlow, error) {
	id := p.exec.ID
	f := &ExecutionFlow{
		Execution: id, JobName: p.exec.JobName, Status: p.exec.Status, Restart: explained.Restart,
		Job: outline.Job{Flow: []outline.Element{}}, Visits: []FlowVisit{},
	}
	switch {
	case p.file != nil:
		f.Job = p.file.Outline()
	case p.unread != nil:
		f.Problem = secret.Text(p.unread.Error())
	}
	rows := slices.DeleteFunc(slices.Clone(p.visits), func(row ports.JournalRow) bool { // of a later attempt, or one of this one's steps, which are all there
		return row.Execution > id || row.Execution == id && row.Kind == ports.VisitStep
	})
	steps := stepsIn(rows)
	if p.attempts == nil {
		var err error
		if p.attempts, err = s.attempts(ctx, &p.exec); err != nil {
			return nil, err
		}
		if p.earlier, err = s.explain.records.StepsByID(ctx, steps); err != nil {
			return nil, fmt.Errorf("read the steps of the attempts before execution %d: %w", id, err)
		}
	}
	f.Visits = append(f.Visits, p.stepVisits()...)
	for _, row := range rows {
		f.Visits = append(f.Visits, visitView(row, p.earlier))
	}
	for i := range f.Visits {
		f.Visits[i].Attempt = p.attempts[f.Visits[i].Execution]
	}
	slices.SortStableFunc(f.Visits, func(a, b FlowVisit) int {
		return cmp.Or(cmp.Compare(a.Execution, b.Execution), cmp.Compare(a.Flow, b.Flow), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	return f, nil
}

// attempts are the numbers of the instance's attempts up to e.
func (s *flows) attempts(ctx context.Context, e *core.JobExecution) (map[core.JobExecutionID]int, error) {
	numbers := map[core.JobExecutionID]int{e.ID: e.Attempt}
	if e.Attempt <= 1 {
		return numbers, nil
	}
	const most = 1000
	list, err := s.records.Executions(ctx, ports.ExecutionFilter{JobName: e.JobName, Instance: e.InstanceID, Before: e.ID, Brief: true, Limit: most})
	if err != nil {
		return nil, fmt.Errorf("read the attempts before execution %d: %w", e.ID, err)
	}
	for _, earlier := range list {
		numbers[earlier.ID] = earlier.Attempt
	}
	return numbers, nil
}

// stepVisits are the visits of this attempt to steps, every round of them.
func (p *findings) stepVisits() []FlowVisit {
	rounds := roundsOf(p.own)
	var list []FlowVisit
	for i := range p.own {
		s := &p.own[i]
		if s.Manager != 0 || s.Visit.Element == "" || s.Visit.Flow == ports.FlowFinally {
			continue
		}
		v := FlowVisit{
			Element: s.Visit.Element, Flow: s.Visit.Flow, Ordinal: s.Visit.Ordinal, Kind: ports.VisitStep, Execution: s.JobExecutionID, Round: rounds[s.ID],
		}
		v.ended(s)
		list = append(list, v)
	}
	return list
}

// stepsIn are the step executions that the rows visit or pass.
func stepsIn(rows []ports.JournalRow) []core.StepExecutionID {
	var ids []core.StepExecutionID
	for i := range rows {
		if rows[i].Kind == ports.VisitPass {
			passed, err := strconv.ParseInt(rows[i].Target, 10, 64)
			if err != nil {
				continue // the journal's own reader refuses such a row
			}
			rows[i].Step, rows[i].Target = core.StepExecutionID(passed), ""
		}
		if rows[i].Step != 0 {
			ids = append(ids, rows[i].Step)
		}
	}
	return ids
}

func visitView(row ports.JournalRow, steps map[core.StepExecutionID]core.StepExecution) FlowVisit {
	v := FlowVisit{
		Element: row.Element, Flow: row.Flow, Ordinal: row.Ordinal, Kind: row.Kind, Execution: row.Execution, Verdict: row.Verdict, Target: row.Target,
		Step: row.Step,
	}
	if step, known := steps[row.Step]; known {
		v.ended(&step)
	}
	if row.Kind == ports.VisitFlow || row.Kind == ports.VisitGroup {
		status, exit, _ := strings.Cut(row.Verdict, " ")
		v.Status, v.Exit, v.Verdict = core.Status(status), exit, ""
	}
	return v
}

func (v *FlowVisit) ended(s *core.StepExecution) {
	v.Step, v.Status, v.Exit, v.Started, v.Ended = s.ID, s.Status, s.ExitCode, utc(s.StartedAt), utc(s.EndedAt)
}
