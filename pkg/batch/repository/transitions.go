package repository

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// transitions implements ports.Transitions.
type transitions struct{ *jobGuard }

// ChangeJob implements ports.Transitions: one guarded UPDATE, and an audit row in its transaction. A
// final status also fails every unfinished step: no step outlives its job (rule T5), and a process
// that still runs one commits nothing. An empty ExitCode or Error leaves the stored one. The
// changed keys of the context are merged. The caller marks them as stored once the transaction of
// ctx commits.
func (r *transitions) ChangeJob(ctx context.Context, ref ports.JobRef, change ports.JobChange) (core.Answer, error) {
	m := &guardedMove{
		machine: jobMachine, table: "{job_execution}", job: "id", id: int64(ref.ID), act: actChangeJob,
		move: endOf(change.To, change.Settles), detail: change.Error, guard: &guard{ref.Owner.String(), ref.Epoch},
	}
	m.outcome(change.ExitCode, change.Error, change.Gate)
	m.merge = change.Context
	if change.To == core.StatusStarted {
		m.set("started_at = {now}")
	}
	if change.To.IsOver() {
		m.set("ended_at = COALESCE(ended_at, {now})")
		m.set("active = NULL")
	}
	m.visits = change.Visits
	return r.transition(ctx, m)
}

// EndStep implements ports.Transitions: one guarded UPDATE, and an audit row in its transaction. The
// context is handled as in ChangeJob. A step that moves to ABANDONED keeps its counters, which its
// end has written.
func (r *transitions) EndStep(ctx context.Context, ref ports.StepRef, change ports.StepChange) (core.Answer, error) {
	m := stepMove(ref, endOf(change.To, change.Settles), actEndStep)
	m.detail = change.Error
	m.outcome(change.ExitCode, change.Error, change.Gate)
	switch {
	case change.To == core.StatusAbandoned: // its end is recorded, counters included
	case change.KeepCommitted:
		m.set("rollback_count = ?", change.Counters.Rollback)
	default:
		for i, value := range counterValues(change.Counters) {
			m.set(counterColumns()[i]+" = ?", value)
		}
		inHand, err := encodeCounts(change.InHand)
		if err != nil {
			return "", fmt.Errorf("step execution %d: %w", ref.ID, err)
		}
		if inHand != "" {
			m.set("in_hand_counts = ?", inHand)
		}
	}
	if change.To != core.StatusAbandoned && change.Closed {
		m.set("closed = ?", true)
	}
	if err := m.context(change.Context); err != nil {
		return "", fmt.Errorf("step execution %d: %w", ref.ID, err)
	}
	out, err := encodeOut(change.Out)
	if err != nil {
		return "", fmt.Errorf("step execution %d: %w", ref.ID, err)
	}
	if out != "" {
		m.set("out = ?", out)
	}
	if change.To.IsOver() {
		m.set("ended_at = COALESCE(ended_at, {now})")
	}
	m.visits = change.Visits
	return r.transition(ctx, m)
}

// endOf returns the transition to a status. For UNKNOWN, settles means that a checkpoint determines
// the outcome.
func endOf(to core.Status, settles bool) core.Move[core.Status] {
	if to == core.StatusUnknown && settles {
		return ports.Executions().Move(ports.MoveLoseCommit)
	}
	return ports.MoveTo(to)
}
