package core

// Executions is the transition table of job and step executions (rule D3).
func Executions() Machine[Status] {
	owned := []Status{StatusStarting, StatusStarted, StatusStopping}
	begun := []Status{StatusStarted, StatusStopping}
	resting := []Status{StatusParked, StatusStopping}
	const owner = "owner and epoch are the caller's"
	return Machine[Status]{name: "execution", moves: []Move[Status]{
		{Name: MoveStart, From: []Status{StatusStarting}, To: StatusStarted, Intent: IntentBegin,
			Trigger: "its process begins the work", Guard: owner, Prevents: "two processes that begin one execution"},
		{Name: MoveRequestStop, From: []Status{StatusStarting, StatusStarted, StatusParked}, To: StatusStopping, Intent: IntentAsk,
			Trigger: "an operator, a signal, or the parent of a child job", Prevents: "a stop of what is over"},
		{Name: MoveComplete, From: begun, To: StatusCompleted, Intent: IntentEnd,
			Trigger: "the work is done", Guard: owner, Prevents: "a late end, after somebody took the work over"},
		{Name: MoveStop, From: owned, To: StatusStopped, Intent: IntentEnd,
			Trigger: "the owner has followed a request to stop", Guard: owner, Prevents: "a late end, after somebody took the work over"},
		{Name: MoveFail, From: owned, To: StatusFailed, Intent: IntentEnd,
			Trigger: "the work failed", Guard: owner, Prevents: "a failure that is recorded over a success"},
		{Name: MoveLoseOutcome, From: begun, To: StatusUnknown, Intent: IntentEnd,
			Trigger: "a COMMIT got no reply, and the database cannot be asked", Guard: owner, Prevents: "a success or a failure that nobody knows of"},
		{Name: MoveLoseCommit, From: begun, To: StatusUnknown, Intent: IntentEnd,
			Trigger: "a COMMIT in another database got no reply, and its checkpoint cannot be read now", Guard: owner, Prevents: "a success or a failure that nobody knows of"},
		{Name: MoveSettle, From: []Status{StatusUnknown}, To: StatusFailed, Intent: IntentTake,
			Trigger: "a launch or a recovery finds work that ended by lose_commit: its restart reads the checkpoint", Guard: "the last move is lose_commit", Prevents: "rows that are written twice"},
		{Name: MoveAbandon, From: []Status{StatusStopping, StatusStopped, StatusFailed, StatusUnknown}, To: StatusAbandoned, Intent: IntentEnd,
			Trigger: "an operator gives the instance up", Guard: "it is the newest of its instance", Prevents: "a restart of what was given up; giving up what runs or is complete"},
		{Name: MoveTakeOver, From: owned, To: StatusFailed, Intent: IntentTake,
			Trigger: "a launch, a restart or a recovery finds the owner gone", Guard: "the lease is over", Prevents: "a commit of the owner that was gone, when it wakes"},
		{Name: MoveEndWithJob, From: ActiveStatuses(), To: StatusFailed, Intent: IntentTake,
			Trigger: "its job ends", Guard: "the job's owner and epoch are the caller's", Prevents: "a step that outlives its job"},
		{Name: MovePark, From: begun, To: StatusParked, Intent: IntentRelease,
			Trigger: "only parts that others do are left", Guard: owner + ", and no stop was asked for", Prevents: "a stop that nobody hears"},
		{Name: MoveResume, From: resting, To: StatusStarted, Intent: IntentTake,
			Trigger: "the last part has ended", Guard: "there is no owner, and no part is open", Prevents: "two processes that continue one execution"},
		{Name: MoveResumeToStop, From: resting, To: StatusStopping, Intent: IntentTake,
			Trigger: "the last part has ended, and a stop was asked for", Guard: "there is no owner", Prevents: "a stopped job that goes on"},
		{Name: MoveAssign, From: owned, To: StatusStarted, Intent: IntentTake,
			Trigger: "a worker takes a part", Guard: "nobody owns the part, or its lease is over", Prevents: "two workers that do one part"},
		{Name: MoveRelease, From: begun, To: StatusStarting, Intent: IntentTake,
			Trigger: "a worker gives a part back, or its lease is over", Guard: "owner and epoch are those of the worker", Prevents: "a part that is lost with its worker"},
		{Name: MoveReclaim, From: []Status{StatusStarted}, To: StatusStarted, Intent: IntentTake,
			Trigger: "a COMMIT got no reply, and the owner asks what it did", Guard: owner, Prevents: "the lost COMMIT arriving later, beside a second attempt"},
		{Name: MoveFence, From: []Status{StatusStarted}, To: StatusStarted, Intent: IntentTake,
			Trigger: "a step does not return when its time is over", Guard: owner, Prevents: "a commit of the step after its job has gone on"},
	}}
}
