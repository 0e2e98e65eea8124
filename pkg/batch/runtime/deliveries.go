package runtime

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/runtime/engine"
)

// WakeQueue is the queue of deliveries of parts and parked executions. They only have a
// worker look for some at once: which there are, the tables say.
const WakeQueue = "surfin.parts"

// deliveries are those of tasks, as an engine carries them: each type is a queue.
func deliveries(tasks []task.Delivery) []engine.Delivery {
	list := make([]engine.Delivery, len(tasks))
	for i, d := range tasks {
		list[i] = engine.Delivery{
			Kind: engine.Task, ID: int64(d.ID), Epoch: d.Epoch, Queue: d.Type, Priority: d.Priority, NotBefore: d.NotBefore,
		}
	}
	return list
}

func taskDelivery(d engine.Delivery) task.Delivery {
	return task.Delivery{ID: task.ID(d.ID), Epoch: d.Epoch, Type: d.Queue, Priority: d.Priority, NotBefore: d.NotBefore}
}

// Waiting finds deliveries of tasks that wait in the repository, for an engine that has no
// table of its own.
type Waiting struct{ Repository task.Executions }

// Due returns deliveries of the queues that wait now, at most limit, by priority and age.
func (w Waiting) Due(ctx context.Context, queues []string, limit int) ([]engine.Delivery, error) {
	found, err := w.Repository.Due(ctx, queues, limit)
	return deliveries(found), err
}

// pauseOf is how long a delivery is left alone that cannot be taken now.
func pauseOf(poll time.Duration) engine.Answer { return engine.RetryAfter(jittered(poll)) }
