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
	switch status := p.exec.Status; {
	case p.newest.ID != id:
		e.Refused = ReasonNotNewest
		add(Action{Kind: ActExplain, Execution: p.newest.ID, Status: p.newest.Status})
	case status == core.StatusParked, status.IsRunning() && e.Lease == LeaseHeld:
		e.Refused = ReasonRunning
		add(Action{Kind: ActWatch, Job: p.exec.JobName})
		if status != core.StatusStopping && !p.exec.StopRequested {
			add(Action{Kind: ActStop, Execution: id})
		}
	case status == core.StatusCompleted:
		e.Refused = ReasonComplete
		p.offerAnew(e)
	case status == core.StatusAbandoned:
		e.Refused = ReasonAbandoned
		p.offerAnew(e)
	case status == core.StatusUnknown:
		e.Refused = ReasonUnknown
		add(Action{Kind: ActAbandon, Execution: id})
		p.offerAnew(e)
	default:
		if err := p.offerRestart(ctx, e); err != nil {
			return err
		}
	}
	p.offerSkips(e)
	return nil
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
	switch {
	case p.exec.RedriveOf != 0: // it runs no flow, but what is left of the skipped items
	case p.job == nil:
	case !p.job.Restartable:
		e.Refused = ReasonNotRestartable
	default:
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
		p.offerAnew(e)
		return nil
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
func (p *history) offerAnew(e *Explanation) {
	path := p.exec.Definition.Path
	if path == "" || p.exec.RedriveOf != 0 || p.job == nil {
		return
	}
	if other, ok := otherParameter(p.job, p.exec.Params); ok && p.exec.Status == core.StatusCompleted {
		e.Actions = append(e.Actions, Action{Kind: ActRun, File: path, Params: other})
	}
	e.Actions = append(e.Actions, Action{Kind: ActAgain, File: path, Params: texts(p.exec.Params, p.job.Parameters)})
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
