package ports

import (
	"context"
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

// PlacedWaiting is the waiting work of a class.
type PlacedWaiting struct {
	PlacedClass
	Kind PlacedKind
	// Work is at most MostPlaced. Orphaned is the part of it with a worker that left before it began.
	Work, Orphaned int
	Since          time.Time
}

// MostPlaced bounds the numbers of a PlacedWaiting.
const MostPlaced = 1_000

// Room is the amount of work of a class that workers can take now, and their deciders.
type Room struct {
	Free     int
	Deciders []string
	// Workers is how many workers fit. Work that was assigned as often, and given back, waits for Pause from its last
	// assignment on.
	Workers int
	Pause   time.Duration
}

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
	// Classes returns the classes of the work that waits to be assigned, at most limit.
	Classes(ctx context.Context, limit int) ([]PlacedWaiting, error)
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

// The states of placed work. Tasks have more.
const (
	PlacePending  = "PENDING"  // waits until the leader assigns it
	PlaceAssigned = "ASSIGNED" // a worker has it, and has not begun
	PlaceRunning  = "RUNNING"  // the worker has begun
	PlaceOrphaned = "ORPHANED" // its worker left before it began
	PlaceEnded    = "ENDED"
)

// The moves of the placement of a part, or of a child job.
const (
	MovePlaceAssign = "assign"
	MovePlaceStart  = "start"
	MovePlaceOrphan = "orphan"
	MovePlaceReturn = "return"
	MovePlaceEnd    = "end"
)

// Placements is the transition table of the placements of parts and of child jobs. A task's placement
// is part of the task's table.
func Placements() core.Machine[string] {
	m, err := core.NewMachine("placement", []core.Move[string]{
		{
			Name: MovePlaceAssign, From: []string{PlacePending, PlaceOrphaned}, To: PlaceAssigned, Intent: core.IntentTake,
			Trigger: "the leader: a matching worker has a free slot", Guard: "the leader's epoch; the work waits", Prevents: "a part that two workers start",
		},
		{
			Name: MovePlaceStart, From: []string{PlaceAssigned}, To: PlaceRunning, Intent: core.IntentBegin,
			Trigger: "the worker starts its assigned work", Guard: "the worker; its move of the work is in the same transaction", Prevents: "a part that starts on a worker that does not match",
		},
		{
			Name: MovePlaceOrphan, From: []string{PlaceAssigned}, To: PlaceOrphaned, Intent: core.IntentTake,
			Trigger: "the leader: the worker disappeared before it started; or the worker: it cannot start it", Guard: "the leader's epoch; assigned too long ago, and the worker is gone or stopping; or the worker", Prevents: "a start by the worker that was given up",
		},
		{
			Name: MovePlaceReturn, From: []string{PlaceRunning}, To: PlacePending, Intent: core.IntentTake,
			Trigger: "the leader: the worker returned the work, or its lease has expired, or the execution is parked again", Guard: "the leader's epoch; the work waits for a worker", Prevents: "work that waits for a worker that no longer has it",
		},
		{
			Name: MovePlaceEnd, From: []string{PlacePending, PlaceAssigned, PlaceRunning, PlaceOrphaned}, To: PlaceEnded, Intent: core.IntentEnd,
			Trigger: "the leader: the work is over", Guard: "the leader's epoch; the work is over", Prevents: "an assignment of work that is over",
		},
	}...)
	if err != nil {
		panic(err) // the table above is wrong
	}
	return m
}
