package operator

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/operator/position"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (p *findings) explainRestart(ctx context.Context, e *Explanation) error {
	add := func(a Action) { e.Actions = append(e.Actions, a) }
	id := p.exec.ID
	restartable := p.job == nil || p.job.Restartable || p.exec.RedriveOf != 0 // a redrive runs no flow
	if p.unreadable != nil {
		e.Unreadable = p.unreadable.Error()
	}
	switch reason := reasonOf(p.newest.Refusal(restartable)); {
	case p.newest.Execution.ID != id:
		e.Refused = refusal.NotNewest
		add(Action{Kind: refusal.ActExplain, Execution: p.newest.Execution.ID, Status: p.newest.Execution.Status})
	case reason == refusal.Running:
		e.Refused = reason
		p.offerWatch(e)
	case p.unreadable != nil && reason == "":
		e.Refused = refusal.IllegalState
	case reason == "", reason == refusal.NotRestartable:
		e.Refused = reason
		if err := p.offerRestart(ctx, e); err != nil {
			return err
		}
	default:
		e.Refused = reason
		if reason == refusal.Unknown {
			add(Action{Kind: refusal.ActAbandon, Execution: id})
		}
		if err := p.offerAnew(ctx, e); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(e.Actions, isSkips) {
		p.offerSkips(e)
	}
	return nil
}

func isSkips(a Action) bool { return a.Kind == refusal.ActSkips }

func (p *findings) offerWatch(e *Explanation) {
	if p.exec.Status.IsOver() {
		e.Actions = append(e.Actions, p.judge.recoverAction(p.exec.ID, p.exec.Owner))
		return
	}
	e.Actions = append(e.Actions, Action{Kind: refusal.ActWatch, Job: p.exec.JobName})
	if p.exec.Status != core.StatusStopping && !p.exec.StopRequested {
		e.Actions = append(e.Actions, Action{Kind: refusal.ActStop, Execution: p.exec.ID})
	}
	if isParked(&p.exec) && p.exec.StopRequested {
		e.Actions = append(e.Actions, Action{Kind: refusal.ActRecover})
	}
	if isParked(&p.exec) {
		e.Actions = append(e.Actions, Action{Kind: refusal.ActWork, Execution: p.exec.ID})
	}
}

func (p *findings) offerSkips(e *Explanation) {
	if len(p.skips) == 0 {
		return
	}
	if !p.exec.Status.IsOver() || p.exec.RedriveOf != 0 {
		e.Actions = append(e.Actions, skipActions(p.exec.ID, 0, 0)...)
		return
	}
	var items, reads int64
	for _, c := range p.skips {
		if c.Phase == core.PhaseRead {
			reads += c.Left
		} else {
			items += c.Left
		}
	}
	e.Actions = append(e.Actions, skipActions(p.exec.ID, items, reads)...)
}

func (p *findings) offerRestart(ctx context.Context, e *Explanation) error {
	add := func(a Action) { e.Actions = append(e.Actions, a) }
	if p.exec.Status.IsRunning() {
		add(Action{Kind: refusal.ActRecover})
	}
	if e.Refused == "" && p.job != nil && p.exec.RedriveOf == 0 {
		current, err := p.compare(ctx, e)
		if err != nil || e.Refused != "" {
			return err
		}
		plan, err := restartPlan(ctx, p.known(), &p.exec, current)
		if errors.Is(err, ports.ErrUnreadable) {
			e.Refused, e.Unreadable = refusal.IllegalState, err.Error()
			return nil
		}
		if err != nil {
			return err
		}
		p.describeResumed(plan)
		e.Restart = plan
		if plan.Limit != nil {
			e.Refused = refusal.StartLimit
		} else if err := p.explainExcluded(ctx, e, current); err != nil {
			return err
		}
	}
	if e.Refused == refusal.Exclusive {
		add(p.judge.restartAction(&p.exec, false))
		return nil
	}
	if e.Refused != "" {
		return p.offerAnew(ctx, e)
	}
	if p.change != "" && p.carried == nil {
		e.Actions = append(e.Actions, compareActions(p.exec.ID, p.exec.Definition, p.now, p.exec.Definition.Path)...)
	}
	if p.skipsFirst() {
		p.offerSkips(e)
	}
	if c := e.Cause; c != nil && e.Status == core.StatusFailed && (c.Kind == CauseStep || c.Kind == CauseError || c.Kind == CauseGate) {
		add(Action{Kind: refusal.ActCure, Execution: p.exec.ID, Step: c.Step, Name: c.lasting()})
	}
	add(p.judge.restartAction(&p.exec, false))
	if !p.exec.Status.IsRunning() {
		add(Action{Kind: refusal.ActAbandon, Execution: p.exec.ID})
	}
	return nil
}

// skipsFirst reports whether all steps with items to correct have completed: others may have to (rule C12b).
func (p *findings) skipsFirst() bool {
	left := false
	for _, c := range p.skips {
		left = left || c.Left > 0
		step, _, _ := strings.Cut(c.Step, ":")
		if c.Left > 0 && !slices.ContainsFunc(p.own, func(s core.StepExecution) bool { return s.Name == step && s.Status == core.StatusCompleted }) {
			return false
		}
	}
	return left && p.exec.RedriveOf == 0
}

func (p *findings) explainExcluded(ctx context.Context, e *Explanation, current *model.Job) error {
	refused, err := p.admission.excluded(ctx, current, p.exec.Params)
	if err != nil || refused == nil {
		return err
	}
	excluded, _ := errors.AsType[*ports.ExclusiveError](refused.Err)
	e.Refused, e.RefusedBy = refused.Reason, excluded.Running.ExecutionID
	e.Actions = append(e.Actions, refused.Actions...)
	return nil
}

func (p *findings) compare(ctx context.Context, e *Explanation) (*model.Job, error) {
	inFile := p.carried != nil || p.exec.Definition.Path != ""
	if p.change != FileChanged && (p.change != "" || !p.exec.FormerTimes || !inFile) {
		return p.job, nil
	}
	file, err := p.carried, error(nil)
	if file == nil {
		file, err = jobfile.Load(p.exec.Definition.Path, p.jobs.registry)
	}
	var current *model.Job
	if err == nil {
		current, err = p.jobs.compileFile(file)
	}
	if err != nil {
		e.FileError = err.Error()
		return p.job, nil
	}
	changes, err := p.changes.changes(ctx, &p.exec, &launch{definition: definition{file: file, path: file.Path()}, job: current, params: p.exec.Params})
	e.Changes = changes
	if refused, is := errors.AsType[*Refusal](err); is {
		e.Refused, e.Diff, err = refused.Reason, refused.Diff, nil
		e.Actions = append(e.Actions, refused.Actions...)
		if !p.exec.Status.IsRunning() {
			e.Actions = append(e.Actions, Action{Kind: refusal.ActAbandon, Execution: p.exec.ID})
		}
	}
	return current, err
}

func (p *findings) offerAnew(ctx context.Context, e *Explanation) error {
	path := p.exec.Definition.Path
	if path == "" || p.exec.RedriveOf != 0 || p.job == nil {
		return nil
	}
	if p.exec.Status == core.StatusCompleted {
		other, err := p.admission.otherInstance(ctx, p.job, p.exec.Params, path)
		if err != nil {
			return err
		}
		e.Actions = append(e.Actions, other...)
	}
	e.Actions = append(e.Actions, launchAction(refusal.ActAgain, path, p.exec.Params, p.job.Parameters))
	return nil
}

func (p *findings) positionOf(last core.StepExecution, reads string) string {
	if database, _ := p.committedIn(last); database != "" {
		return "what is committed in database " + database
	}
	if last.Context != nil {
		if _, submitted := last.Context.Get(ports.TasksKey); submitted {
			return "the tasks that have succeeded"
		}
	}
	return position.Text(last.Position, reads)
}

func (p *findings) describeResumed(plan *RestartPlan) {
	for i := range plan.Entries {
		e := &plan.Entries[i]
		if e.Action != PlanResume {
			continue
		}
		e.From = p.positionOf(p.history[e.Step].Last, p.reads(e.Step))
		var parts PlanPartitions
		all := p.parts[e.Step]
		parts.Completed = all.statuses()[core.StatusCompleted]
		for _, part := range all.left(listedPartitions) {
			if record, known := p.record[part.ID]; known && record.Status != core.StatusCompleted {
				parts.Again = append(parts.Again, PlanPartition{strings.TrimPrefix(part.Name, core.PartName(e.Step, "")), p.positionOf(record, "")})
			}
		}
		slices.SortFunc(parts.Again, func(a, b PlanPartition) int { return strings.Compare(a.Name, b.Name) })
		parts.Omitted = len(all) - parts.Completed - len(parts.Again)
		if parts.Completed+len(parts.Again) > 0 {
			e.Partitions = &parts
		}
	}
}
