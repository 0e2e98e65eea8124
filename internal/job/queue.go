package job

import (
	"context"
	"errors"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// NeedsUs implements model.JobRunner. A step stores its wait (ports.WaitsKey)
// before it asks, so of two that wait for each other at least one finds out.
func (l *Launcher) NeedsUs(ctx context.Context, execution, waiter core.JobExecutionID) (bool, error) {
	us := map[core.JobExecutionID]bool{}
	for id := waiter; id != 0; {
		us[id] = true
		e, err := l.config.Repository.Execution(ctx, id)
		if err != nil {
			return false, err
		}
		id = e.Parent
	}
	seen := map[core.JobExecutionID]bool{}
	for ask := []core.JobExecutionID{execution}; len(ask) > 0; {
		id := ask[0]
		ask = ask[1:]
		switch {
		case us[id]:
			return true, nil
		case seen[id]:
			continue
		}
		seen[id] = true
		more, err := l.waitsFor(ctx, id)
		if err != nil {
			return false, err
		}
		ask = append(ask, more...)
	}
	return false, nil
}

func (l *Launcher) waitsFor(ctx context.Context, id core.JobExecutionID) ([]core.JobExecutionID, error) {
	e, err := l.config.Repository.Execution(ctx, id)
	if errors.Is(err, core.ErrNotFound) {
		return nil, nil
	}
	if err != nil || e.Status.IsOver() {
		return nil, err
	}
	var list []core.JobExecutionID
	steps, err := l.config.Repository.Steps(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		if s.Status.IsOver() || s.Context == nil {
			continue
		}
		if of, is := s.Context.Get(ports.WaitsKey); is {
			if n, is := of.(int64); is {
				list = append(list, core.JobExecutionID(n))
			}
		}
	}
	children, err := l.config.Repository.Executions(ctx, ports.ExecutionFilter{Parent: id, Limit: core.MaxPartitions, Brief: true})
	for _, child := range children {
		if !child.Status.IsOver() {
			list = append(list, child.ID)
		}
	}
	return list, err
}
