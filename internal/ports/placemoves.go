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
