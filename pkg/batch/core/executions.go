package core

// Executions is the transition table of job and step executions (rule D3).
func Executions() Machine[Status] {
	owned := []Status{StatusStarting, StatusStarted, StatusStopping}
	begun := []Status{StatusStarted, StatusStopping}
	resting := []Status{StatusParked, StatusStopping}
	move := func(name string, from []Status, to Status, intent Intent) Move[Status] {
		return Move[Status]{Name: name, From: from, To: to, Intent: intent}
	}
	const owner = "owner and epoch are the caller's"
	return Machine[Status]{name: "execution", moves: []Move[Status]{
		move(MoveStart, []Status{StatusStarting}, StatusStarted, IntentBegin).Because(
			"its process begins the work", owner, "two processes that begin one execution"),
		move(MoveRequestStop, []Status{StatusStarting, StatusStarted, StatusParked}, StatusStopping, IntentAsk).Because(
			"an operator, a signal, or the parent of a child job", "", "a stop of what is over"),
		move(MoveComplete, begun, StatusCompleted, IntentEnd).Because(
			"the work is done", owner, "a late end, after somebody took the work over"),
		move(MoveStop, owned, StatusStopped, IntentEnd).Because(
			"the owner has followed a request to stop", owner, "a late end, after somebody took the work over"),
		move(MoveFail, owned, StatusFailed, IntentEnd).Because(
			"the work failed", owner, "a failure that is recorded over a success"),
		move(MoveLoseOutcome, begun, StatusUnknown, IntentEnd).Because(
			"a COMMIT got no reply, and the database cannot be asked", owner, "a success or a failure that nobody knows of"),
		move(MoveLoseCommit, begun, StatusUnknown, IntentEnd).Because(
			"a COMMIT in another database got no reply, and its checkpoint cannot be read now", owner, "a success or a failure that nobody knows of"),
		move(MoveSettle, []Status{StatusUnknown}, StatusFailed, IntentTake).Because(
			"a launch or a recovery finds work that ended by lose_commit: its restart reads the checkpoint", "the last move is lose_commit", "rows that are written twice"),
		move(MoveAbandon, []Status{StatusStopping, StatusStopped, StatusFailed, StatusUnknown}, StatusAbandoned, IntentEnd).Because(
			"an operator gives the instance up", "it is the newest of its instance", "a restart of what was given up; giving up what runs or is complete"),
		move(MoveTakeOver, owned, StatusFailed, IntentTake).Because(
			"a launch, a restart or a recovery finds the owner gone", "the lease is over", "a commit of the owner that was gone, when it wakes"),
		move(MoveEndWithJob, ActiveStatuses(), StatusFailed, IntentTake).Because(
			"its job ends", "the job's owner and epoch are the caller's", "a step that outlives its job"),
		move(MovePark, begun, StatusParked, IntentRelease).Because(
			"only parts that others do are left", owner+", and no stop was asked for", "a stop that nobody hears"),
		move(MoveResume, resting, StatusStarted, IntentTake).Because(
			"the last part has ended", "there is no owner, and no part is open", "two processes that continue one execution"),
		move(MoveResumeToStop, resting, StatusStopping, IntentTake).Because(
			"the last part has ended, and a stop was asked for", "there is no owner", "a stopped job that goes on"),
		move(MoveAssign, owned, StatusStarted, IntentTake).Because(
			"a worker takes a part", "nobody owns the part, or its lease is over", "two workers that do one part"),
		move(MoveRelease, begun, StatusStarting, IntentTake).Because(
			"a worker gives a part back, or its lease is over", "owner and epoch are those of the worker", "a part that is lost with its worker"),
		move(MoveReclaim, []Status{StatusStarted}, StatusStarted, IntentTake).Because(
			"a COMMIT got no reply, and the owner asks what it did", owner, "the lost COMMIT arriving later, beside a second attempt"),
		move(MoveFence, []Status{StatusStarted}, StatusStarted, IntentTake).Because(
			"a step does not return when its time is over", owner, "a commit of the step after its job has gone on"),
	}}
}
