package core

// Executions is the transition table of job and step executions (rule D3).
func Executions() Machine[Status] {
	owned := []Status{StatusStarting, StatusStarted, StatusStopping}
	begun := []Status{StatusStarted, StatusStopping}
	resting := []Status{StatusParked, StatusStopping}
	const owner = "the caller has the owner and the epoch"
	return Machine[Status]{name: "execution", moves: []Move[Status]{
		{Name: MoveStart, From: []Status{StatusStarting}, To: StatusStarted, Intent: IntentBegin,
			Trigger: "its process starts the work", Guard: owner, Prevents: "two processes that start one execution"},
		{Name: MoveRequestStop, From: []Status{StatusStarting, StatusStarted, StatusParked}, To: StatusStopping, Intent: IntentAsk,
			Trigger: "an operator, a signal, or the parent of a child job", Prevents: "a stop after the end"},
		{Name: MoveComplete, From: begun, To: StatusCompleted, Intent: IntentEnd,
			Trigger: "the work is done", Guard: owner, Prevents: "a late end, after another owner took over"},
		{Name: MoveStop, From: owned, To: StatusStopped, Intent: IntentEnd,
			Trigger: "the owner has obeyed a request to stop", Guard: owner, Prevents: "a late end, after another owner took over"},
		{Name: MoveFail, From: owned, To: StatusFailed, Intent: IntentEnd,
			Trigger: "the work failed", Guard: owner, Prevents: "a failure that is recorded over a success"},
		{Name: MoveLoseOutcome, From: begun, To: StatusUnknown, Intent: IntentEnd,
			Trigger: "a COMMIT got no reply, and the database is unreachable", Guard: owner, Prevents: "a success or failure that is not known"},
		{Name: MoveLoseCommit, From: begun, To: StatusUnknown, Intent: IntentEnd,
			Trigger: "a COMMIT in another database got no reply, and its checkpoint cannot be read now", Guard: owner, Prevents: "a success or failure that is not known"},
		{Name: MoveSettle, From: []Status{StatusUnknown}, To: StatusFailed, Intent: IntentTake,
			Trigger: "a launch or a recovery finds work that ended with lose_commit: its restart reads the checkpoint", Guard: "the last move is lose_commit", Prevents: "rows that are written twice"},
		{Name: MoveAbandon, From: []Status{StatusStopping, StatusStopped, StatusFailed, StatusUnknown}, To: StatusAbandoned, Intent: IntentEnd,
			Trigger: "an operator abandons the instance", Guard: "it is the newest of its instance", Prevents: "a restart after abandon; abandoning running or complete work"},
		{Name: MoveTakeOver, From: owned, To: StatusFailed, Intent: IntentTake,
			Trigger: "a launch, a restart or a recovery finds the owner gone", Guard: "the lease has expired", Prevents: "a commit of the lost owner when it wakes"},
		{Name: MoveEndWithJob, From: ActiveStatuses(), To: StatusFailed, Intent: IntentTake,
			Trigger: "its job ends", Guard: "the caller has the job's owner and epoch", Prevents: "a step that outlives its job"},
		{Name: MovePark, From: begun, To: StatusParked, Intent: IntentRelease,
			Trigger: "only parts on other processes are left", Guard: owner + ", and no stop was requested", Prevents: "a stop that no process receives"},
		{Name: MoveResume, From: resting, To: StatusStarted, Intent: IntentTake,
			Trigger: "the last part has ended", Guard: "there is no owner and no open part", Prevents: "two processes that continue one execution"},
		{Name: MoveResumeToStop, From: resting, To: StatusStopping, Intent: IntentTake,
			Trigger: "the last part has ended, and a stop was requested", Guard: "there is no owner", Prevents: "a stopped job that continues"},
		{Name: MoveAssign, From: owned, To: StatusStarted, Intent: IntentTake,
			Trigger: "a worker takes a part", Guard: "the part has no owner, or its lease has expired", Prevents: "two workers that run one part"},
		{Name: MoveRelease, From: begun, To: StatusStarting, Intent: IntentTake,
			Trigger: "a worker returns a part, or its lease has expired", Guard: "the worker has the owner and the epoch", Prevents: "a part that is lost with its worker"},
		{Name: MoveReclaim, From: []Status{StatusStarted}, To: StatusStarted, Intent: IntentTake,
			Trigger: "a COMMIT got no reply, and the owner checks its outcome", Guard: owner, Prevents: "the lost COMMIT arriving later, next to a second attempt"},
		{Name: MoveFence, From: []Status{StatusStarted}, To: StatusStarted, Intent: IntentTake,
			Trigger: "a step does not return after its timeout", Guard: owner, Prevents: "a commit of the step after its job has continued"},
	}}
}
