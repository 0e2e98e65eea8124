package core

// The moves of the placement of a part, or of a child job.
const (
	MovePlaceAssign = "assign"
	MovePlaceStart  = "start"
	MovePlaceOrphan = "orphan"
	MovePlaceReturn = "return"
	MovePlaceEnd    = "end"
)

// Placements is the transition table of the placements of parts and of child jobs. That of a task is part of the task's.
func Placements() Machine[string] {
	move := func(name, to string, intent Intent, from ...string) Move[string] {
		return Move[string]{Name: name, From: from, To: to, Intent: intent}
	}
	return Machine[string]{name: "placement", moves: []Move[string]{
		move(MovePlaceAssign, PlaceAssigned, IntentTake, PlacePending, PlaceOrphaned).Because(
			"the leader: a worker that fits has a free slot", "the leader's epoch; the work waits", "a part that two workers begin"),
		move(MovePlaceStart, PlaceRunning, IntentBegin, PlaceAssigned).Because(
			"the worker begins what it was assigned", "the worker; its move of the work itself is in the same transaction", "a part that begins on a worker which does not fit"),
		move(MovePlaceOrphan, PlaceOrphaned, IntentTake, PlaceAssigned).Because(
			"the leader: the worker went away before it started", "the leader's epoch; assigned too long ago, and the worker is gone or being stopped", "a start by the worker that was given up"),
		move(MovePlaceReturn, PlacePending, IntentTake, PlaceRunning).Because(
			"the leader: the worker gave the work back, or its lease is over, or the execution is parked again", "the leader's epoch; the work waits for a worker", "work that waits for a worker which has it no longer"),
		move(MovePlaceEnd, PlaceEnded, IntentEnd, PlacePending, PlaceAssigned, PlaceRunning, PlaceOrphaned).Because(
			"the leader: the work is over", "the leader's epoch; the work is over", "an assignment of work that is over"),
	}}
}
