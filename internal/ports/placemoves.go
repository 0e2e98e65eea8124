package ports

import "github.com/surfin-batch/surfin/pkg/batch/core"

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
			Trigger: "the leader: a worker that fits has a free slot", Guard: "the leader's epoch; the work waits", Prevents: "a part that two workers begin",
		},
		{
			Name: MovePlaceStart, From: []string{PlaceAssigned}, To: PlaceRunning, Intent: core.IntentBegin,
			Trigger: "the worker begins what it was assigned", Guard: "the worker; its move of the work itself is in the same transaction", Prevents: "a part that begins on a worker which does not fit",
		},
		{
			Name: MovePlaceOrphan, From: []string{PlaceAssigned}, To: PlaceOrphaned, Intent: core.IntentTake,
			Trigger: "the leader: the worker went away before it started; or the worker: it cannot begin it", Guard: "the leader's epoch; assigned too long ago, and the worker is gone or being stopped; or the worker", Prevents: "a start by the worker that was given up",
		},
		{
			Name: MovePlaceReturn, From: []string{PlaceRunning}, To: PlacePending, Intent: core.IntentTake,
			Trigger: "the leader: the worker gave the work back, or its lease is over, or the execution is parked again", Guard: "the leader's epoch; the work waits for a worker", Prevents: "work that waits for a worker which has it no longer",
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
