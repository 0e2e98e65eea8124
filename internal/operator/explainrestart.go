package operator

import (
	"context"
	"errors"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// explainRestart adds the plan of a restart, or why it is refused, and the possible actions.
func (p *history) explainRestart(ctx context.Context, e *Explanation) error {
	add := func(a Action) { e.Actions = append(e.Actions, a) }
	id := p.exec.ID
	restartable := p.job == nil || p.job.Restartable || p.exec.RedriveOf != 0 // a redrive runs no flow
	switch reason := reasonOf(p.newest.Refusal(restartable)); {
	case p.newest.Execution.ID != id:
		e.Refused = ReasonNotNewest
		add(Action{Kind: ActExplain, Execution: p.newest.Execution.ID, Status: p.newest.Execution.Status})
	case reason == ReasonRunning:
		e.Refused = reason
		p.offerWatch(e)
	case reason == "", reason == ReasonNotRestartable:
		e.Refused = reason
		if err := p.offerRestart(ctx, e); err != nil {
			return err
		}
	default:
		e.Refused = reason
		if reason == ReasonUnknown {
			add(Action{Kind: ActAbandon, Execution: id})
		}
		if err := p.offerAnew(ctx, e); err != nil {
			return err
		}
	}
	p.offerSkips(e)
	return nil
}

// offerWatch adds actions for an execution that runs, or has ended with an unfinished step.
func (p *history) offerWatch(e *Explanation) {
	if p.exec.Status.IsOver() {
		e.Actions = append(e.Actions, p.service.recoverAction(p.exec.ID, p.exec.Owner))
		return
	}
	e.Actions = append(e.Actions, Action{Kind: ActWatch, Job: p.exec.JobName})
	if p.exec.Status != core.StatusStopping && !p.exec.StopRequested {
		e.Actions = append(e.Actions, Action{Kind: ActStop, Execution: p.exec.ID})
	}
	if isParked(&p.exec) && p.exec.StopRequested {
		e.Actions = append(e.Actions, Action{Kind: ActRecover})
	}
	if isParked(&p.exec) {
		e.Actions = append(e.Actions, Action{Kind: ActWork, Execution: p.exec.ID})
	}
}

func (p *history) offerSkips(e *Explanation) {
	if len(p.skips) == 0 {
		return
	}
	e.Actions = append(e.Actions, Action{Kind: ActSkips, Execution: p.exec.ID})
	if !p.exec.Status.IsOver() || p.exec.RedriveOf != 0 {
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
	switch {
	case items > 0:
		e.Actions = append(e.Actions, Action{Kind: ActRedrive, Execution: p.exec.ID})
	case reads > 0: // the text of unreadable items has to be given first
		e.Actions = append(e.Actions, Action{Kind: ActExport, Execution: p.exec.ID})
	}
}

// offerRestart adds actions for an execution that failed, stopped, or lost its process.
func (p *history) offerRestart(ctx context.Context, e *Explanation) error {
	add := func(a Action) { e.Actions = append(e.Actions, a) }
	if p.exec.Status.IsRunning() {
		add(Action{Kind: ActRecover})
	}
	if e.Refused == "" && p.job != nil && p.exec.RedriveOf == 0 {
		current, err := p.compare(ctx, e)
		if err != nil || e.Refused != "" {
			return err
		}
		plan, err := p.service.restartPlan(ctx, &p.exec, current)
		if err != nil {
			return err
		}
		p.describeResumed(plan)
		e.Restart = plan
		if plan.Limit != nil {
			e.Refused = ReasonStartLimit
		} else if err := p.explainExcluded(ctx, e, current); err != nil {
			return err
		}
	}
	if e.Refused == ReasonExclusive {
		add(p.service.restartAction(&p.exec, false))
		return nil
	}
	if e.Refused != "" {
		return p.offerAnew(ctx, e)
	}
	if p.change != "" && p.carried == nil {
		e.Actions = append(e.Actions, compareActions(p.exec.ID, p.exec.Definition, p.now, p.exec.Definition.Path)...)
	}
	add(p.service.restartAction(&p.exec, false))
	if !p.exec.Status.IsRunning() {
		add(Action{Kind: ActAbandon, Execution: p.exec.ID})
	}
	return nil
}

// explainExcluded adds the execution that the restart must not run concurrently with.
func (p *history) explainExcluded(ctx context.Context, e *Explanation, current *model.Job) error {
	refused, err := p.service.excluded(ctx, current, p.exec.Params)
	if err != nil || refused == nil {
		return err
	}
	var excluded *core.ExclusiveError
	errors.As(refused.Err, &excluded)
	e.Refused, e.RefusedBy = refused.Reason, excluded.Running.ExecutionID
	e.Actions = append(e.Actions, refused.Actions...)
	return nil
}

// compare compares a changed job file with the execution's, as a launch does, and returns the job
// that a restart runs. If the launch would refuse it, compare adds the possible actions to the
// explanation.
func (p *history) compare(ctx context.Context, e *Explanation) (*model.Job, error) {
	inFile := p.carried != nil || p.exec.Definition.Path != ""
	if p.change != FileChanged && (p.change != "" || !p.exec.FormerTimes || !inFile) {
		return p.job, nil
	}
	file, err := p.carried, error(nil)
	if file == nil {
		file, err = jobfile.Load(p.exec.Definition.Path, p.service.config.Registry)
	}
	var current *model.Job
	if err == nil {
		current, err = file.Compile(p.service.deps(p.service.config.Registry))
	}
	if err != nil {
		e.FileError = err.Error()
		return p.job, nil
	}
	changes, err := p.service.changes(ctx, &p.exec, &launch{definition: definition{file: file, path: file.Path()}, job: current, params: p.exec.Params})
	e.Changes = changes
	var refused *Refusal
	if errors.As(err, &refused) {
		e.Refused, e.Diff, err = refused.Reason, refused.Diff, nil
		e.Actions = append(e.Actions, refused.Actions...)
		if !p.exec.Status.IsRunning() {
			e.Actions = append(e.Actions, Action{Kind: ActAbandon, Execution: p.exec.ID})
		}
	}
	return current, err
}

func (p *history) offerAnew(ctx context.Context, e *Explanation) error {
	path := p.exec.Definition.Path
	if path == "" || p.exec.RedriveOf != 0 || p.job == nil {
		return nil
	}
	if p.exec.Status == core.StatusCompleted {
		other, err := p.service.otherInstance(ctx, p.job, p.exec.Params, path)
		if err != nil {
			return err
		}
		e.Actions = append(e.Actions, other...)
	}
	e.Actions = append(e.Actions, launchAction(ActAgain, path, p.exec.Params, p.job.Parameters))
	return nil
}

// positionOf describes the position after which a step is resumed; empty if it starts from the
// beginning.
func (p *history) positionOf(last core.StepExecution, reads string) string {
	if database, _ := p.committedIn(last); database != "" {
		return "what is committed in database " + database
	}
	if last.Context != nil {
		if _, submitted := last.Context.Get(core.TasksKey); submitted {
			return "the tasks that have succeeded"
		}
	}
	return positionText(last.Position, reads)
}

func (p *history) describeResumed(plan *RestartPlan) {
	for i := range plan.Entries {
		e := &plan.Entries[i]
		if e.Action != PlanResume {
			continue
		}
		e.From = p.positionOf(p.history[e.Step].Last, p.reads(e.Step))
		var parts PlanPartitions
		for _, name := range p.parts[e.Step] {
			last := p.history[name].Last
			switch {
			case last.Status == core.StatusCompleted:
				parts.Completed++
			case len(parts.Again) == listedPartitions:
				parts.Omitted++
			default:
				parts.Again = append(parts.Again, PlanPartition{strings.TrimPrefix(name, core.PartName(e.Step, "")), p.positionOf(last, "")})
			}
		}
		if parts.Completed+len(parts.Again) > 0 {
			e.Partitions = &parts
		}
	}
}
