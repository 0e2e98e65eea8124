package operator

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// explainRestart says what a restart does, or why there is none, and the ways on.
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

// offerWatch is for an execution that runs, or is over and has a step that is not.
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

// offerSkips adds what may be done about skipped items.
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
	case reads > 0: // what could not be read has to be given first
		e.Actions = append(e.Actions, Action{Kind: ActExport, Execution: p.exec.ID})
	}
}

// offerRestart is for an execution that failed, stopped, or lost its process.
func (p *history) offerRestart(ctx context.Context, e *Explanation) error {
	add := func(a Action) { e.Actions = append(e.Actions, a) }
	if p.exec.Status.IsRunning() {
		add(Action{Kind: ActRecover})
	}
	if e.Refused == "" && p.job != nil && p.exec.RedriveOf == 0 {
		plan, err := p.service.restartPlan(ctx, &p.exec, p.job)
		if err != nil {
			return err
		}
		p.describeResumed(plan)
		e.Restart = plan
		if plan.Limit != nil {
			e.Refused = ReasonStartLimit
		}
	}
	if e.Refused != "" {
		return p.offerAnew(ctx, e)
	}
	if p.change != "" && !p.carried {
		e.Actions = append(e.Actions, compareActions(p.exec.ID, p.exec.Definition, p.now, p.exec.Definition.Path)...)
	}
	add(p.service.restartAction(&p.exec, false))
	if !p.exec.Status.IsRunning() {
		add(Action{Kind: ActAbandon, Execution: p.exec.ID})
	}
	return nil
}

// offerAnew adds the ways to another instance.
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
	e.Actions = append(e.Actions, Action{Kind: ActAgain, File: path, Params: texts(p.exec.Params, p.job.Parameters)})
	return nil
}

// describeResumed adds positions and partitions to the steps that the plan resumes.
func (p *history) describeResumed(plan *RestartPlan) {
	for i := range plan.Entries {
		e := &plan.Entries[i]
		if e.Action != PlanResume {
			continue
		}
		e.From = positionText(p.history[e.Step].Last.Position, p.reads(e.Step))
		var parts PlanPartitions
		for _, name := range slices.Sorted(maps.Keys(p.history)) {
			part, is := strings.CutPrefix(name, core.PartName(e.Step, ""))
			last := p.history[name].Last
			switch {
			case !is:
			case last.Status == core.StatusCompleted:
				parts.Completed++
			default:
				parts.Again = append(parts.Again, PlanPartition{part, positionText(last.Position, "")})
			}
		}
		if parts.Completed+len(parts.Again) > 0 {
			e.Partitions = &parts
		}
	}
}
