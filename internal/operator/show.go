package operator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// ShowRequest selects one execution.
type ShowRequest struct {
	Execution core.JobExecutionID `json:"execution"`
	// Partitions adds every partition of the steps, not only those that failed.
	Partitions bool `json:"partitions,omitempty"`
	// Audit adds every change of a status, with its actor.
	Audit bool `json:"audit,omitempty"`
	// Definition adds the job file as it was when the execution began, and the files that it names.
	Definition bool `json:"definition,omitempty"`
}

const maxRedrives = 100

// Show returns an execution with its steps and decisions, or core.ErrNotFound.
func (s *Service) Show(ctx context.Context, req ShowRequest) (*ExecutionView, error) {
	judged, err := s.judgedExecution(ctx, req.Execution)
	if err != nil {
		return nil, err
	}
	exec := &judged.Execution
	view := s.executionView(exec, &judged.Newest)
	waiting, err := s.waiting(ctx, []ports.JudgedExecution{*judged})
	if err != nil {
		return nil, err
	}
	view.Waiting = waiting[exec.ID]
	placed, err := s.placed(ctx, []ports.JudgedExecution{*judged})
	if err != nil {
		return nil, err
	}
	view.Placed = placed[exec.ID]
	if req.Definition {
		view.Definition = definitionFiles(exec.Definition)
	}
	steps, err := s.config.Repository.Steps(ctx, exec.ID)
	if err != nil {
		return nil, fmt.Errorf("read the steps of execution %d: %w", exec.ID, err)
	}
	work, err := s.stepWork(ctx, map[core.JobExecutionID][]core.StepExecution{exec.ID: steps})
	if err != nil {
		return nil, err
	}
	for _, step := range splitPartitions(steps) {
		of := s.partitionedView(step, req.Partitions)
		of.Tasks = tasksOf(step.StepExecution, work)
		if of.Child == 0 {
			of.Child, of.ChildStatus = childOf(step.StepExecution, work)
		}
		view.Steps = append(view.Steps, of)
	}
	if view.Decisions, err = s.decisions(ctx, exec); err != nil {
		return nil, err
	}
	redrives, err := s.config.Repository.Executions(ctx, ports.ExecutionFilter{RedriveOf: exec.ID, Brief: true, Limit: maxRedrives})
	if err != nil {
		return nil, fmt.Errorf("read the redrives of execution %d: %w", exec.ID, err)
	}
	for _, e := range redrives {
		view.RedrivenBy = append(view.RedrivenBy, e.ID)
		view.Redrives = append(view.Redrives, Redrive{e.ID, e.Status})
	}
	if req.Audit {
		if view.Audit, err = s.audit(ctx, exec.ID, steps); err != nil {
			return nil, err
		}
	}
	return &view, nil
}

func (s *Service) audit(ctx context.Context, id core.JobExecutionID, steps []core.StepExecution) ([]AuditView, error) {
	entries, err := s.config.Repository.Audit(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read the audit of execution %d: %w", id, err)
	}
	names := make(map[core.StepExecutionID]string, len(steps))
	for _, step := range steps {
		names[step.ID] = step.Name
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

// actorView names a process without its nonce, and a person unchanged.
func actorView(actor string) string {
	if o := core.ParseOwner(actor); o.PID > 0 {
		return fmt.Sprintf("process %d on %s", o.PID, o.Host)
	}
	return actor
}

// SummaryRequest selects the execution for a Summary.
type SummaryRequest struct {
	Execution core.JobExecutionID
	// Passed are the steps that the execution did not run because an earlier attempt had
	// completed them.
	Passed []core.StepExecution
}

// Summary returns an execution as the database has it, with one entry for each step: the rounds of
// a loop are added up, and for a step that was passed and then ran again the run counts. It returns
// core.ErrNotFound if there is no such execution.
func (s *Service) Summary(ctx context.Context, req SummaryRequest) (*ExecutionView, error) {
	exec, err := s.config.Repository.Execution(ctx, req.Execution)
	if err != nil {
		return nil, fmt.Errorf("read execution %d: %w", req.Execution, err)
	}
	ran, err := s.config.Repository.Steps(ctx, exec.ID)
	if err != nil {
		return nil, fmt.Errorf("read the steps of execution %d: %w", exec.ID, err)
	}
	newest := s.asNewest(exec)
	view := s.executionView(exec, &newest)
	for _, rounds := range oncePerStep(req.Passed, ran) {
		view.Steps = append(view.Steps, s.roundsView(rounds))
	}
	return &view, nil
}

type partitioned struct {
	*core.StepExecution
	parts []core.StepExecution
}

// splitPartitions takes the executions of partitions, which are recorded as STEP:PARTITION, out of
// the list, and assigns each to the newest preceding execution of its step.
func splitPartitions(all []core.StepExecution) []partitioned {
	var steps []partitioned
	place := map[string]int{}
	for i := range all {
		s := &all[i]
		step, _, is := strings.Cut(s.Name, ":")
		if at, known := place[step]; is && known {
			steps[at].parts = append(steps[at].parts, *s)
			continue
		}
		place[s.Name] = len(steps)
		steps = append(steps, partitioned{StepExecution: s})
	}
	return steps
}

// total returns the counters of all attempts and of all partitions, and of earlier attempts alone.
// The step's own counters are written only at its end.
func (p partitioned) total() (all, before core.Counters) {
	if len(p.parts) == 0 {
		return p.Total(), p.Before
	}
	for _, part := range p.parts {
		all, before = all.Add(part.Total()), before.Add(part.Before)
	}
	return all, before
}

func (p partitioned) completed() (n int) {
	for _, part := range p.parts {
		if part.Status == core.StatusCompleted {
			n++
		}
	}
	return n
}

// partitionedView returns a step with its failed partitions, or with all.
func (s *Service) partitionedView(step partitioned, all bool) StepView {
	view := s.stepView(step.StepExecution)
	if len(step.parts) == 0 {
		return view
	}
	p := &PartitionsView{Total: len(step.parts), Statuses: map[core.Status]int{}, List: []StepView{}}
	for i := range step.parts {
		part := &step.parts[i]
		p.Statuses[part.Status]++
		p.Branches = p.Branches || part.IsBranch()
		view := s.stepView(part)
		switch listed := all || view.Worker != nil || part.Status == core.StatusFailed || part.Status == core.StatusUnknown || isRefused(part); {
		case listed && !all && len(p.List) == listedPartitions:
			p.Omitted++
		case listed:
			p.List = append(p.List, view)
		}
	}
	view.Partitions = p
	view.Warnings = append(view.Warnings, warningsOf(step.parts, view.Warnings)...)
	return view
}

// warningsOf returns the warnings of partitions, each text once, without the known ones, and
// bounded in number.
func warningsOf(parts []core.StepExecution, known []string) (list []string) {
	seen, more := map[string]bool{}, 0
	for _, text := range known {
		seen[text] = true
	}
	for i := range parts {
		for _, text := range parts[i].Warnings() {
			switch {
			case seen[text]:
			case len(list) == listedPartitions:
				more++
			default:
				list = append(list, text)
			}
			seen[text] = true
		}
	}
	if more > 0 {
		list = append(list, fmt.Sprintf("%d more warnings of partitions: show the execution with all partitions", more))
	}
	return list
}

// isRefused reports whether a worker could not begin the partition, and none has it now.
func isRefused(part *core.StepExecution) bool {
	return part.Status == core.StatusStarting && part.Error != ""
}

// oncePerStep groups step executions by step: first the steps that were passed and not run again,
// then those that ran, each in the order of its first round.
func oncePerStep(passed, ran []core.StepExecution) [][]partitioned {
	var groups [][]partitioned
	place := map[string]int{}
	steps := splitPartitions(ran)
	for _, s := range steps {
		place[s.Name] = -1 // it ran: its passed record is history
	}
	for _, s := range splitPartitions(passed) {
		if _, known := place[s.Name]; !known {
			place[s.Name] = len(groups)
			groups = append(groups, []partitioned{s})
		}
	}
	for _, s := range steps {
		if at := place[s.Name]; at >= 0 {
			groups[at] = append(groups[at], s)
			continue
		}
		place[s.Name] = len(groups)
		groups = append(groups, []partitioned{s})
	}
	return groups
}

// roundsView returns the newest of a step's rounds, with the counters of all. A round with a
// condition that did not hold does not count.
func (s *Service) roundsView(rounds []partitioned) StepView {
	view := s.partitionedView(rounds[len(rounds)-1], false)
	var sum core.Counters
	var took time.Duration
	for _, r := range rounds {
		if r.Status == core.StatusCompleted && r.ExitCode == core.ExitNoop {
			continue
		}
		view.Rounds++
		sum, took = sum.Add(r.Counters), took+elapsed(r.StartedAt, r.EndedAt, s.config.Now())
	}
	if view.Rounds < 2 {
		view.Rounds = 0
		return view
	}
	view.count(sum)
	view.measure(sum, took)
	return view
}
