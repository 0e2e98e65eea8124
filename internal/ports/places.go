package ports

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// PlacedWork is the placed work of jobs: parts and child jobs.
type PlacedWork interface {
	Places
	// PlacedOf returns unbegun work: parts, child jobs, and the executions themselves.
	PlacedOf(ctx context.Context, ids ...core.JobExecutionID) ([]Placed, error)
}

// Places is work that the leader assigns to workers (rule PL2), in ctx's transaction.
type Places interface {
	Unassigned(ctx context.Context, room func(PlacedClass) Room) ([]Placed, error)
	// AssignPlaced assigns waiting work if the epoch is the leader's, and returns its delivery's
	// epoch; 0: not assigned.
	AssignPlaced(ctx context.Context, work Placed, worker string, leader int64) (epoch int64, err error)
	// OrphanPlaced takes back unbegun work assigned longer than after ago to a worker that is gone
	// or stopping, and returns the number.
	OrphanPlaced(ctx context.Context, after time.Duration, leader int64, limit int) (int, error)
	EndPlaced(ctx context.Context, leader int64, limit int) (int, error)
	AssignedTo(ctx context.Context, worker string, limit int) ([]Placed, error)
	LoadOf(ctx context.Context, loads map[string]int) error
}
