package runtime

import (
	"context"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
)

// Waiting finds deliveries that wait in the repository, for an engine without
// its own table.
type Waiting struct {
	Tasks taskports.Deliveries
	// Tasks of groups with other deciders are left to other processes.
	Deciders []string
	Parts    ports.Parks
	// Places find the work that the leader assigns; may be nil.
	Places []ports.Places
}

// Due returns at most limit deliveries that wait now, by priority, then age;
// tasks and others alternate, so that neither waits for all of the other.
func (w Waiting) Due(ctx context.Context, queues []string, limit int) ([]engine.Delivery, error) {
	own := ""
	types := slices.DeleteFunc(slices.Clone(queues), func(q string) bool {
		if w := ownWorker(q); w != "" {
			own = w
			return true
		}
		return q == WakeQueue
	})
	waiting, err := w.waiting(ctx, queues, types, limit)
	if err != nil || own == "" || len(w.Places) == 0 {
		return waiting, err
	}
	assigned, err := assignedTo(ctx, w.Places, own, limit)
	if err != nil || len(assigned) == 0 {
		return waiting, err
	}
	all := inTurn(waiting, assigned)
	return all[:min(len(all), limit)], nil
}

func (w Waiting) waiting(ctx context.Context, queues, types []string, limit int) ([]engine.Delivery, error) {
	var found []engine.Delivery
	if len(types) > 0 {
		list, err := w.Tasks.Due(ctx, types, w.Deciders, limit)
		if err != nil {
			return nil, err
		}
		found = taskDeliveries(list)
	}
	if !slices.Contains(queues, WakeQueue) || w.Parts == nil {
		return found, nil
	}
	ready, err := w.Parts.Ready(ctx, ports.ReadyPlace{}, limit)
	if err != nil {
		return nil, err
	}
	all := inTurn(found, readyDeliveries(ready))
	return all[:min(len(all), limit)], nil
}

func inTurn(a, b []engine.Delivery) []engine.Delivery {
	all := make([]engine.Delivery, 0, len(a)+len(b))
	for i := range max(len(a), len(b)) {
		if i < len(b) {
			all = append(all, b[i].Filled())
		}
		if i < len(a) {
			all = append(all, a[i].Filled())
		}
	}
	slices.SortStableFunc(all, func(x, y engine.Delivery) int { return x.Priority - y.Priority })
	return all
}
