package repository

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// stops implements ports.Stops.
type stops struct{ *moves }

// RequestStop implements ports.Launches. Any process may request it: no owner is compared. A
// repeated request returns core.Duplicate. Running child jobs receive the request too, and each
// sees it at its own next commit.
func (r *stops) RequestStop(ctx context.Context, id core.JobExecutionID, actor string) (core.Answer, error) {
	m := &guardedMove{
		machine: jobMachine, table: "{job_execution}", job: "id", id: int64(id), act: actRequestStop, actor: actor,
		move: ports.Executions().Move(ports.MoveRequestStop),
	}
	m.set("stop_requested = ?", true)
	answer, err := r.transition(ctx, m)
	if refused, ok := errors.AsType[*core.TransitionError](err); ok && refused.Current == core.StatusStopping {
		answer, err = core.Duplicate, nil // a stop was requested before, and the execution was resumed to stop
	}
	if err != nil {
		return answer, err
	}
	return answer, r.stopChildren(ctx, id, actor)
}

// stopChildren requests a stop of the running child jobs, except children of `finally`.
func (r *stops) stopChildren(ctx context.Context, id core.JobExecutionID, actor string) error {
	var children []core.JobExecutionID
	err := r.store.scan(ctx, &children, `SELECT c.id FROM {job_execution} c WHERE c.parent_id = ? AND c.active = 1
		AND NOT EXISTS (SELECT 1 FROM {step_execution} s WHERE s.id = c.parent_call AND s.flow = ?)`, id, ports.FlowFinally)
	if err != nil {
		return fmt.Errorf("job execution %d: read its child jobs: %w", id, err)
	}
	for _, child := range children {
		if _, err := r.RequestStop(ctx, child, actor); err != nil && !hasEnded(err) {
			return err
		}
	}
	return nil
}

func hasEnded(err error) bool {
	refused, ok := errors.AsType[*core.TransitionError](err)
	return ok && refused.Current != "" && refused.Current.IsOver()
}
