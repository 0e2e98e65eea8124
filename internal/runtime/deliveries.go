package runtime

import (
	"context"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// WakeQueue is for parts and parked executions. The tables decide if a delivery
// is still available.
const WakeQueue = "surfin.parts"

const ownQueue = "surfin.on "

// QueueOf returns the queue of the work that the leader assigns to a worker.
func QueueOf(worker string) string { return ownQueue + worker }

func ownWorker(queue string) string {
	worker, is := strings.CutPrefix(queue, ownQueue)
	if !is {
		return ""
	}
	return worker
}

// Announcer is a ports.Announcer that hands parts and parked executions to an
// engine.
type Announcer struct{ Engine engine.Engine }

// Announce implements ports.Announcer.
func (a Announcer) Announce(ctx context.Context, list ...ports.Ready) error {
	return a.Engine.Enqueue(ctx, readyDeliveries(list)...)
}

func readyDeliveries(list []ports.Ready) []engine.Delivery {
	ds := make([]engine.Delivery, len(list))
	for i, r := range list {
		d := engine.Delivery{Kind: engine.Part, ID: int64(r.Part), Epoch: r.Epoch, Queue: WakeQueue, NotBefore: r.Since}
		if r.Part == 0 {
			d.Kind, d.ID = engine.Resume, int64(r.Execution)
		}
		ds[i] = d
	}
	return ds
}

func taskDeliveries(tasks []taskports.Delivery) []engine.Delivery {
	list := make([]engine.Delivery, len(tasks))
	for i, d := range tasks {
		list[i] = engine.Delivery{
			Kind: engine.Task, ID: int64(d.ID), Epoch: d.Epoch, Queue: d.Type, Priority: d.Priority, NotBefore: d.NotBefore,
		}
	}
	return list
}

func taskDelivery(d engine.Delivery) taskports.Delivery {
	return taskports.Delivery{ID: task.ID(d.ID), Epoch: d.Epoch, Type: d.Queue, Priority: d.Priority, NotBefore: d.NotBefore}
}

func placedDelivery(work ports.Placed, worker string) engine.Delivery {
	d := engine.Delivery{Kind: engine.Task, ID: work.ID, Epoch: work.Epoch, Queue: QueueOf(worker), Priority: work.Priority}
	switch work.Kind {
	case ports.PlacedTask:
	case ports.PlacedPart:
		d.Kind, d.NotBefore = engine.Part, work.Since
	case ports.PlacedExecution:
		d.Kind, d.NotBefore = engine.Resume, work.Since
	}
	return d
}
