package ports

import "github.com/surfin-batch/surfin/pkg/batch/core"

// Executions is the transition table of job and step executions (rule D3).
func Executions() core.Machine[core.Status] {
	owned := []core.Status{core.StatusStarting, core.StatusStarted, core.StatusStopping}
	begun := []core.Status{core.StatusStarted, core.StatusStopping}
	resting := []core.Status{core.StatusParked, core.StatusStopping}
	const owner = "the caller has the owner and the epoch"
	m, err := core.NewMachine("execution", []core.Move[core.Status]{
		{Name: MoveStart, From: []core.Status{core.StatusStarting}, To: core.StatusStarted, Intent: core.IntentBegin,
			Trigger: "its process starts the work", Guard: owner, Prevents: "two processes that start one execution"},
		{Name: MoveRequestStop, From: []core.Status{core.StatusStarting, core.StatusStarted, core.StatusParked}, To: core.StatusStopping, Intent: core.IntentAsk,
			Trigger: "an operator, a signal, or the parent of a child job", Prevents: "a stop after the end"},
		{Name: MoveComplete, From: begun, To: core.StatusCompleted, Intent: core.IntentEnd,
			Trigger: "the work is done", Guard: owner, Prevents: "a late end, after another owner took over"},
		{Name: MoveStop, From: owned, To: core.StatusStopped, Intent: core.IntentEnd,
			Trigger: "the owner has obeyed a request to stop", Guard: owner, Prevents: "a late end, after another owner took over"},
		{Name: MoveFail, From: owned, To: core.StatusFailed, Intent: core.IntentEnd,
			Trigger: "the work failed", Guard: owner, Prevents: "a failure that is recorded over a success"},
		{Name: MoveLoseOutcome, From: begun, To: core.StatusUnknown, Intent: core.IntentEnd,
			Trigger: "a COMMIT got no reply, and the database is unreachable", Guard: owner, Prevents: "a success or failure that is not known"},
		{Name: MoveLoseCommit, From: begun, To: core.StatusUnknown, Intent: core.IntentEnd,
			Trigger: "a COMMIT in another database got no reply, and its checkpoint cannot be read now", Guard: owner, Prevents: "a success or failure that is not known"},
		{Name: MoveSettle, From: []core.Status{core.StatusUnknown}, To: core.StatusFailed, Intent: core.IntentTake,
			Trigger: "a launch or a recovery finds work that ended with lose_commit: its restart reads the checkpoint", Guard: "the last move is lose_commit", Prevents: "rows that are written twice"},
		{Name: MoveAbandon, From: []core.Status{core.StatusStopping, core.StatusStopped, core.StatusFailed, core.StatusUnknown}, To: core.StatusAbandoned, Intent: core.IntentEnd,
			Trigger: "an operator abandons the instance", Guard: "it is the newest of its instance", Prevents: "a restart after abandon; abandoning running or complete work"},
		{Name: MoveTakeOver, From: owned, To: core.StatusFailed, Intent: core.IntentTake,
			Trigger: "a launch, a restart or a recovery finds the owner gone", Guard: "the lease has expired", Prevents: "a commit of the lost owner when it wakes"},
		{Name: MoveEndWithJob, From: ActiveStatuses(), To: core.StatusFailed, Intent: core.IntentTake,
			Trigger: "its job ends", Guard: "the caller has the job's owner and epoch", Prevents: "a step that outlives its job"},
		{Name: MovePark, From: begun, To: core.StatusParked, Intent: core.IntentRelease,
			Trigger: "only parts on other processes are left", Guard: owner + ", and no stop was requested", Prevents: "a stop that no process receives"},
		{Name: MoveResume, From: resting, To: core.StatusStarted, Intent: core.IntentTake,
			Trigger: "the last part has ended", Guard: "there is no owner and no open part", Prevents: "two processes that continue one execution"},
		{Name: MoveResumeToStop, From: resting, To: core.StatusStopping, Intent: core.IntentTake,
			Trigger: "the last part has ended, and a stop was requested", Guard: "there is no owner", Prevents: "a stopped job that continues"},
		{Name: MoveAssign, From: owned, To: core.StatusStarted, Intent: core.IntentTake,
			Trigger: "a worker takes a part", Guard: "the part has no owner, or its lease has expired", Prevents: "two workers that run one part"},
		{Name: MoveRelease, From: begun, To: core.StatusStarting, Intent: core.IntentTake,
			Trigger: "a worker returns a part, or its lease has expired", Guard: "the worker has the owner and the epoch", Prevents: "a part that is lost with its worker"},
		{Name: MoveReclaim, From: []core.Status{core.StatusStarted}, To: core.StatusStarted, Intent: core.IntentTake,
			Trigger: "a COMMIT got no reply, and the owner checks its outcome", Guard: owner, Prevents: "the lost COMMIT arriving later, next to a second attempt"},
		{Name: MoveFence, From: []core.Status{core.StatusStarted}, To: core.StatusStarted, Intent: core.IntentTake,
			Trigger: "a step does not return after its timeout", Guard: owner, Prevents: "a commit of the step after its job has continued"},
	}...)
	if err != nil {
		panic(err) // the table above is wrong
	}
	return m
}

// The moves of job and step executions.
const (
	MoveStart = "start"
	// MoveRequestStop requests a stop. Parked work has no owner: it is resumed to stop.
	MoveRequestStop = "request_stop"
	MoveComplete    = "complete"
	MoveStop        = "stop"
	MoveFail        = "fail"
	// MoveLoseOutcome ends work that may or may not be committed.
	MoveLoseOutcome = "lose_outcome"
	// MoveLoseCommit is MoveLoseOutcome if a checkpoint resolves it later, and MoveSettle ends that.
	MoveLoseCommit = "lose_commit"
	MoveSettle     = "settle"
	MoveAbandon    = "abandon"
	// MoveTakeOver ends the work of a lost owner.
	MoveTakeOver = "take_over"
	// MoveEndWithJob ends a step that is not over when its job is.
	MoveEndWithJob = "end_with_job"
	// MovePark releases an execution that only waits for its partitions.
	MovePark = "park"
	// MoveResume continues a parked execution in the same attempt, MoveResumeToStop one with a stop
	// request meanwhile.
	MoveResume       = "resume"
	MoveResumeToStop = "resume_to_stop"
	// MoveAssign gives a partition to a worker, MoveRelease takes it back from one that does not finish
	// it.
	MoveAssign  = "assign"
	MoveRelease = "release"
	// MoveReclaim raises the epoch of a step after a COMMIT without a reply, by the owner itself (rule
	// C10), and MoveFence the epoch of a step that does not return (rule L8).
	MoveReclaim = "reclaim"
	MoveFence   = "fence"
)

// MoveTo returns the move by which an owner brings its own execution to a status. The zero Move is from
// nowhere.
func MoveTo(to core.Status) core.Move[core.Status] {
	switch to {
	case core.StatusStarted:
		return Executions().Move(MoveStart)
	case core.StatusStopping:
		return Executions().Move(MoveRequestStop)
	case core.StatusCompleted:
		return Executions().Move(MoveComplete)
	case core.StatusStopped:
		return Executions().Move(MoveStop)
	case core.StatusFailed:
		return Executions().Move(MoveFail)
	case core.StatusUnknown:
		return Executions().Move(MoveLoseOutcome)
	case core.StatusAbandoned:
		return Executions().Move(MoveAbandon)
	case core.StatusStarting, core.StatusParked:
	}
	return core.Move[core.Status]{To: to}
}
