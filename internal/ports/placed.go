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

// The states of placed work. Tasks have more.
const (
	PlacePending  = "PENDING"  // waits until the leader assigns it
	PlaceAssigned = "ASSIGNED" // a worker has it, and has not begun
	PlaceRunning  = "RUNNING"  // the worker has begun
	PlaceOrphaned = "ORPHANED" // its worker left before it began
	PlaceEnded    = "ENDED"
)

// Placed is work with a placement.
type Placed struct {
	Kind PlacedKind `json:"kind"`
	ID   int64      `json:"id"`
	// Name is the name of the part, or of the child job; Execution the execution of the part, or the
	// child's.
	Name      string              `json:"name,omitempty"`
	Execution core.JobExecutionID `json:"execution,omitempty"`
	// Parent is the execution that runs a child job; 0 means none.
	Parent core.JobExecutionID `json:"-"`
	// Epoch is the epoch of the work's row: a delivery carries it.
	Epoch int64          `json:"-"`
	On    core.Placement `json:"on"`
	State string         `json:"state"`
	// Worker has it, or had it last; Attempt counts the assignments.
	Worker  string `json:"worker,omitempty"`
	Attempt int    `json:"attempt"`
	// Type and Decider are required of a worker for a task.
	Type    string `json:"-"`
	Decider string `json:"-"`
	// Priority and Since order the waiting work.
	Priority int       `json:"-"`
	Since    time.Time `json:"-"`
	// Waits is the reason why it is not executed; empty if it is, or is over.
	Waits string `json:"waits,omitempty"`
}

// PlacedClass is a placement, and the type of the tasks that have it.
type PlacedClass struct {
	On   core.Placement
	Type string // "" for parts and executions
}

// Room is the amount of work of a class that workers can take now, and their deciders.
type Room struct {
	Free     int
	Deciders []string
	// Workers is how many workers fit. Work that was assigned as often, and given back, waits for Pause from its last
	// assignment on.
	Workers int
	Pause   time.Duration
}
