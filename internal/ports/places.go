package ports

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// PlacedWork is the placed work of jobs: parts and child jobs.
type PlacedWork interface {
	Places
	// PlacedOf returns the work of the executions that no worker has begun: their parts and child jobs,
	// and themselves.
	PlacedOf(ctx context.Context, ids ...core.JobExecutionID) ([]Placed, error)
	// GiveBack takes the assignment of a part or an execution that it has not begun from a worker which cannot begin it:
	// the leader assigns it again (rule PL4). One that the worker does not have, or has begun, stays as it is.
	GiveBack(ctx context.Context, work Ready, worker string) error
}

// Places is work that the leader assigns to workers (rule PL2). Its methods work in the transaction that ctx carries.
type Places interface {
	// Unassigned returns work that waits to be assigned, oldest first: of each class at most as much as
	// room allows.
	Unassigned(ctx context.Context, room func(PlacedClass) Room) ([]Placed, error)
	// AssignPlaced assigns work to a worker if it still waits and the epoch is the leader's, and
	// returns the epoch of its delivery; 0 means that it was not assigned.
	AssignPlaced(ctx context.Context, work Placed, worker string, leader int64) (epoch int64, err error)
	// OrphanPlaced takes back at most limit pieces of work that were assigned longer than after ago and
	// not begun, if the worker is gone or stopping. It returns their number.
	OrphanPlaced(ctx context.Context, after time.Duration, leader int64, limit int) (int, error)
	// EndPlaced notes, of at most limit pieces of work, that they are over.
	EndPlaced(ctx context.Context, leader int64, limit int) (int, error)
	// AssignedTo returns work that a worker was assigned and has not begun, oldest first.
	AssignedTo(ctx context.Context, worker string, limit int) ([]Placed, error)
	// LoadOf adds to loads the slots of each worker that this work takes, begun or not.
	LoadOf(ctx context.Context, loads map[string]int) error
}
