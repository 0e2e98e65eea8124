package runtime

import (
	"context"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Waits returns why tasks with a placement wait (rule PL5), and tasks of groups with a bound of parallel work, by ID. It
// queries only if there are any.
func (s *TaskService) Waits(ctx context.Context, tasks []task.Task) (map[task.ID]string, error) {
	var workers []taskports.Worker
	var leads bool
	waits, groups := map[task.ID]string{}, map[task.GroupID]*task.Group{}
	for _, t := range tasks {
		placed := t.Spec.On != nil && (t.State == task.Pending || t.State == task.Orphaned || t.State == task.Assigned)
		bounded := t.State == task.Waiting && t.OpenAfterCount == 0
		if !placed && !bounded {
			continue
		}
		if groups[t.GroupID] == nil {
			g, err := s.groups.Group(ctx, t.GroupID)
			if err != nil {
				return nil, refusalOf(err)
			}
			groups[t.GroupID] = g
		}
		if bounded {
			waits[t.ID] = fmt.Sprintf("the end of another task of its group: at most %d are begun at once", groups[t.GroupID].Parallel)
			continue
		}
		if workers == nil {
			var err error
			if workers, leads, err = s.LoadedWorkers(ctx); err != nil {
				return nil, err
			}
		}
		waits[t.ID] = taskports.WaitsFor(ports.Placed{
			Kind: ports.PlacedTask, On: *t.Spec.On, State: string(t.State), Worker: t.Worker, Type: t.Spec.Type, Decider: groups[t.GroupID].Decider,
		}, workers, leads)
	}
	return waits, nil
}

// LoadedWorkers returns the workers with used slots, and whether a process
// leads.
func (s *TaskService) LoadedWorkers(ctx context.Context) (workers []taskports.Worker, leads bool, err error) {
	workers, err = Loaded(ctx, s.workers.Workers, s.places)
	if err != nil {
		return nil, false, refusalOf(err)
	}
	if s.leader == nil {
		return append([]taskports.Worker{}, workers...), true, nil
	}
	leader, err := s.leader(ctx)
	return append([]taskports.Worker{}, workers...), leader != nil && leader.Leading, refusalOf(err)
}

func (s *TaskService) placementWarnings(ctx context.Context, sub task.Submission, list []string) ([]string, error) {
	var workers []taskports.Worker
	var warned []string
	for i, spec := range sub.Tasks {
		class := spec.On.Stored() + spec.Type
		if spec.On == nil || slices.Contains(warned, class) {
			continue
		}
		warned = append(warned, class)
		if workers == nil {
			found, err := s.workers.Workers(ctx)
			if err != nil {
				return nil, err
			}
			workers = append([]taskports.Worker{}, found...)
		}
		p := ports.Placed{Kind: ports.PlacedTask, On: *spec.On, State: ports.PlacePending, Type: spec.Type, Decider: sub.Decider}
		if !slices.ContainsFunc(workers, func(w taskports.Worker) bool { return w.MayDo(p) }) {
			list = append(list, fmt.Sprintf("tasks[%d]: %s", i, taskports.WaitsFor(p, workers, true)))
		}
	}
	return list, nil
}
