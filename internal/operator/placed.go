package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// PlacedWork is work of an execution that waits for certain workers: parts or child jobs with the
// same placement, state and reason (rule PL5).
type PlacedWork struct {
	On    core.Placement `json:"on"`
	State string         `json:"state"`
	// Waits is why no worker does it yet.
	Waits string `json:"waits"`
	Count int    `json:"count"`
	// Names are the names of the first ones.
	Names []string `json:"names"`
	// Unfit means that no live worker may do it.
	Unfit bool `json:"unfit,omitempty"`
}

const mostNames = 5

// placed returns the work of executions that waits for certain workers, with one statement for
// unfinished executions, and a few more if there is such work.
func (s *Service) placed(ctx context.Context, judged []ports.JudgedExecution) (map[core.JobExecutionID][]PlacedWork, error) {
	var ids []core.JobExecutionID
	for i := range judged {
		if e := &judged[i].Execution; !e.Status.IsOver() {
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 || s.config.Workers == nil {
		return nil, nil
	}
	waiting, err := s.config.Repository.PlacedOf(ctx, ids...)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	workers, leads, err := s.loadedWorkers(ctx)
	if err != nil {
		return nil, err
	}
	all := map[core.JobExecutionID][]PlacedWork{}
	for _, w := range waiting {
		of := w.Execution
		if !slices.Contains(ids, of) || w.Parent != 0 && slices.Contains(ids, w.Parent) {
			of = w.Parent
		}
		all[of] = addPlaced(all[of], w, taskports.WaitsFor(w, workers, leads), !slices.ContainsFunc(workers, func(x taskports.Worker) bool { return x.MayDo(w) }))
	}
	return all, nil
}

func addPlaced(list []PlacedWork, w ports.Placed, waits string, unfit bool) []PlacedWork {
	i := slices.IndexFunc(list, func(p PlacedWork) bool {
		return p.On.Stored() == w.On.Stored() && p.State == w.State && p.Waits == waits
	})
	if i < 0 {
		list = append(list, PlacedWork{On: w.On, State: w.State, Waits: waits, Unfit: unfit})
		i = len(list) - 1
	}
	list[i].Count++
	if len(list[i].Names) < mostNames {
		list[i].Names = append(list[i].Names, w.Name)
	}
	return list
}

func (s *Service) loadedWorkers(ctx context.Context) ([]taskports.Worker, bool, error) {
	workers, err := s.config.Workers.Workers(ctx)
	if err != nil {
		return nil, false, err
	}
	loads := map[string]int{}
	for _, of := range []interface {
		LoadOf(ctx context.Context, loads map[string]int) error
	}{s.config.Workers, s.config.Repository} {
		if err := of.LoadOf(ctx, loads); err != nil {
			return nil, false, err
		}
	}
	for i := range workers {
		workers[i].Busy = loads[workers[i].Name]
	}
	leader, err := s.config.Workers.Leader(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("read who leads: %w", err)
	}
	return workers, leader != nil && leader.Leading, nil
}
