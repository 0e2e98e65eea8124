package ports

import (
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// PlacedKind is the kind of work that has a placement.
type PlacedKind string

// The kinds.
const (
	PlacedTask      PlacedKind = "task"
	PlacedPart      PlacedKind = "part"      // a partition, or a branch
	PlacedExecution PlacedKind = "execution" // of a child job
)

// Tasks have more.
const (
	PlacePending  = "PENDING"  // waits until the leader assigns it
	PlaceAssigned = "ASSIGNED" // a worker has it, and has not begun
	PlaceRunning  = "RUNNING"  // the worker has begun
	PlaceOrphaned = "ORPHANED" // its worker left before it began
	PlaceEnded    = "ENDED"
)

// Placed is work with a placement.
type Placed struct {
	Kind      PlacedKind          `json:"kind"`
	ID        int64               `json:"id"`
	Name      string              `json:"name,omitempty"`
	Execution core.JobExecutionID `json:"execution,omitempty"`
	Parent    core.JobExecutionID `json:"-"`
	Epoch     int64               `json:"-"`
	On        core.Placement      `json:"on"`
	State     string              `json:"state"`
	Worker    string              `json:"worker,omitempty"`
	Attempt   int                 `json:"attempt"`
	Type      string              `json:"-"`
	Decider   string              `json:"-"`
	Priority  int                 `json:"-"`
	Since     time.Time           `json:"-"`
	// Waits is why it is not executed; else empty.
	Waits string `json:"waits,omitempty"`
}

// PlacedClass is a placement, and the type of the tasks that have it.
type PlacedClass struct {
	On   core.Placement
	Type string // "" for parts and executions
}

// Room is how much work of a class workers can take now.
type Room struct {
	Free     int
	Deciders []string
	// Workers is how many fit. Work that was assigned as often, and given back, waits for Pause.
	Workers int
	Pause   time.Duration
}
