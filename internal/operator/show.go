package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// ShowRequest selects one execution.
type ShowRequest struct {
	Execution core.JobExecutionID `json:"execution"`
	// Partitions adds the partitions that did not fail, up to 1,000 of a step.
	Partitions bool `json:"partitions,omitempty"`
	// Audit adds every change of a status.
	Audit bool `json:"audit,omitempty"`
	// Definition adds the job file and the files that it names, as they were.
	Definition bool `json:"definition,omitempty"`
}

// Show returns an execution with its steps and decisions, or core.ErrNotFound.
func (s *history) Show(ctx context.Context, req ShowRequest) (*ExecutionView, error) {
	judged, err := s.judge.judgedExecution(ctx, req.Execution)
	if err != nil {
		return nil, err
	}
	exec := &judged.Execution
	most := listedPartitions
	if req.Partitions {
		most = allPartitions
	}
	steps, err := readSteps(ctx, s.steps, judged, most, req.Partitions)
	if err != nil {
		return nil, err
	}
	decisions, err := decisionsOf(ctx, s.records, exec)
	if err != nil {
		return nil, err
	}
	view, err := s.show(ctx, judged, steps, decisions, req)
	if err != nil {
		return nil, err
	}
	if req.Audit {
		if view.Audit, err = s.audit(ctx, exec.ID, steps.names); err != nil {
			return nil, err
		}
		if view.Acts, err = s.actsOn(ctx, exec.InstanceID); err != nil {
			return nil, err
		}
	}
	return view, nil
}

// show is an execution as its records have it.
func (s *history) show(ctx context.Context, judged *ports.JudgedExecution, steps *stepRecords, decisions []DecisionView, req ShowRequest) (*ExecutionView, error) {
	exec := &judged.Execution
	waiting, err := s.work.waiting(ctx, []ports.JudgedExecution{*judged})
	if err != nil {
		return nil, err
	}
	view := executionView(exec, s.view.view(exec, &judged.Newest))
	view.Waiting = waiting[exec.ID]
	if view.Placed, err = s.work.placedIn(ctx, judged, steps); err != nil {
		return nil, err
	}
	view.Decisions = decisions
	if req.Definition {
		view.Definition = definitionFiles(exec.Definition)
	}
	work, err := s.work.stepWork(ctx, map[core.JobExecutionID][]core.StepExecution{exec.ID: steps.own})
	if err != nil {
		return nil, err
	}
	rounds := roundsOf(steps.own)
	for i := range steps.own {
		step := &steps.own[i]
		if step.Manager != 0 {
			continue
		}
		of := s.view.stepOf(step, steps, req.Partitions)
		of.Round = rounds[step.ID]
		of.Tasks = tasksOf(step, work)
		if of.Child == 0 {
			of.Child, of.ChildStatus = childOf(step, work)
		}
		view.Steps = append(view.Steps, of)
	}
	if !exec.Status.IsOver() || exec.Attempt < 2 && !steps.skips {
		return &view, nil
	}
	return &view, s.addRedrives(ctx, &view)
}

// addRedrives adds the executions that redrive skipped items of an execution, or of earlier ones of its instance.
func (s *history) addRedrives(ctx context.Context, view *ExecutionView) error {
	redrives, err := s.records.Redrives(ctx, view.ID, maxRedrives)
	if err != nil {
		return err
	}
	for _, e := range redrives {
		if e.RedriveOf == view.ID {
			view.RedrivenBy = append(view.RedrivenBy, e.ID)
		}
		view.Redrives = append(view.Redrives, Redrive{e.ID, e.RedriveOf, e.Status})
	}
	return nil
}

// roundsOf numbers the visits to the steps that a loop has run more than once.
func roundsOf(steps []core.StepExecution) map[core.StepExecutionID]int {
	visits := map[core.Visit][]core.StepExecutionID{}
	for i := range steps {
		if at := steps[i].Visit; steps[i].Manager == 0 && at.Element != "" {
			at.Ordinal = 0
			visits[at] = append(visits[at], steps[i].ID)
		}
	}
	rounds := map[core.StepExecutionID]int{}
	for _, ids := range visits {
		for i, id := range ids {
			if len(ids) > 1 {
				rounds[id] = i + 1
			}
		}
	}
	return rounds
}

func (s *history) audit(ctx context.Context, id core.JobExecutionID, names map[core.StepExecutionID]string) ([]AuditView, error) {
	entries, err := s.records.Audit(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read the audit of execution %d: %w", id, err)
	}
	views := make([]AuditView, len(entries))
	for i, a := range entries {
		views[i] = AuditView{
			At: utc(a.At), Act: a.Act, Actor: actorView(a.Actor), Step: a.Step, StepName: names[a.Step],
			From: a.From, To: a.To, Epoch: a.Epoch, Detail: a.Detail,
		}
	}
	return views, nil
}

// actsOn are the acts on an instance and its redrives, oldest first.
func (s *history) actsOn(ctx context.Context, id core.JobInstanceID) (views []ActView, err error) {
	if s.acts == nil {
		return nil, nil
	}
	const most = 200
	list, _, err := s.acts.Acts(ctx, ports.ActFilter{Instance: id, Limit: most})
	slices.SortFunc(list, func(a, b ports.Act) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	for i := range list {
		views = append(views, actView(&list[i]))
	}
	return views, err
}

func actorView(actor string) string {
	if o := ports.ParseOwner(actor); o.PID > 0 {
		return fmt.Sprintf("process %d on %s", o.PID, o.Host)
	}
	return actor
}

// SummaryRequest selects the execution for a Summary.
type SummaryRequest struct {
	Execution core.JobExecutionID
	// Passed are the steps that an earlier attempt had completed.
	Passed []core.StepExecution
}

// Summary returns an execution with one entry for each step, with a loop's
// rounds added up; of a step passed and run, the run counts.
func (s *history) Summary(ctx context.Context, req SummaryRequest) (*ExecutionView, error) {
	exec, err := s.records.Execution(ctx, req.Execution)
	if err != nil {
		return nil, fmt.Errorf("read execution %d: %w", req.Execution, err)
	}
	ran, err := s.records.Steps(ctx, exec.ID)
	if err != nil {
		return nil, fmt.Errorf("read the steps of execution %d: %w", exec.ID, err)
	}
	view := executionView(exec, *s.view.execution(exec))
	for _, rounds := range oncePerStep(req.Passed, ran) {
		view.Steps = append(view.Steps, s.view.roundsView(rounds))
	}
	return &view, nil
}

func executionView(e *core.JobExecution, view Execution) ExecutionView {
	return ExecutionView{Execution: view, StopRequested: !e.Status.IsOver() && e.StopRequested}
}
