package taskports

import (
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// The moves of a task.
const (
	// MoveAssign gives a task with a placement to a worker, MoveStart lets that worker begin, and
	// MoveClaim is both at once, for tasks that any worker may execute.
	MoveAssign = "assign"
	MoveStart  = "start"
	MoveClaim  = "claim"
	// MoveSucceed, MoveFail, MoveTimeOut and MoveRetry end an attempt.
	MoveSucceed = "succeed"
	MoveFail    = "fail"
	MoveTimeOut = "time_out"
	MoveRetry   = "retry"
	// MoveLose and MoveLoseForGood end the attempt of a worker with an expired lease: the task is tried
	// again, or not.
	MoveLose        = "lose_owner"
	MoveLoseForGood = "lose_owner_for_good"
	// MoveDue, MoveOrphan, MoveRedeliver and MoveRerun deliver a task again: they raise its epoch.
	MoveDue       = "due"
	MoveOrphan    = "orphan"
	MoveRedeliver = "redeliver"
	MoveRerun     = "rerun"
	// MoveRerunLater is MoveRerun of a task that its worker has not released: it waits for that, at
	// most until the worker's lease is over.
	MoveRerunLater = "rerun_later"
	// MoveCancel ends a task on request; MoveDeadline ends a task that no worker executes when the
	// deadline of its group has passed.
	MoveCancel   = "cancel"
	MoveDeadline = "deadline"
	// MoveOpen delivers a task after all its predecessors have succeeded, MoveCancelWaiting ends a task
	// with a predecessor that did not succeed, and MoveWaitAgain makes it wait again.
	MoveOpen          = "open"
	MoveCancelWaiting = "cancel_waiting"
	MoveWaitAgain     = "wait_again"
)

// Machine returns the transition table of tasks. Every delivery of a task carries the epoch; moves that
// request a new delivery raise it, so that an older delivery finds nothing.
func Machine() core.Machine[task.State] {
	waiting := []task.State{task.Pending, task.Orphaned}
	idle := []task.State{task.Waiting, task.Pending, task.Assigned, task.Orphaned, task.RetryScheduled}
	m, err := core.NewMachine("task",
		core.Move[task.State]{Name: MoveOpen, From: []task.State{task.Waiting}, To: task.Pending, Intent: core.IntentTake,
			Trigger: "the success of the last task that it waits for, or the end of one of its group with a bound of parallel work", Guard: "all of them have succeeded, and the bound is kept; the group is locked", Prevents: "a start before its turn; a task that waits forever"},
		core.Move[task.State]{Name: MoveCancelWaiting, From: []task.State{task.Waiting}, To: task.Canceled, Intent: core.IntentEnd,
			Trigger: "a task that it waits for ended without success", Guard: "the group is locked", Prevents: "a task that waits for an impossible success"},
		core.Move[task.State]{Name: MoveWaitAgain, From: []task.State{task.Failed, task.TimedOut, task.Canceled}, To: task.Waiting, Intent: core.IntentTake,
			Trigger: "a rerun of it, or of a task that it waits for", Guard: "none of them has ended without success; the group is locked", Prevents: "a start before its turn"},
		core.Move[task.State]{Name: MoveAssign, From: waiting, To: task.Assigned, Intent: core.IntentBegin,
			Trigger: "the leader: it has a placement, and a matching worker has a free slot", Guard: "the leader's epoch; it is due, within its deadline", Prevents: "a task that two workers have"},
		core.Move[task.State]{Name: MoveStart, From: []task.State{task.Assigned}, To: task.Running, Intent: core.IntentBegin,
			Trigger: "the worker starts its assigned work", Guard: "the delivery's epoch, the worker; its deadline has not passed", Prevents: "an execution without the right to start it"},
		core.Move[task.State]{Name: MoveClaim, From: waiting, To: task.Running, Intent: core.IntentBegin,
			Trigger: "a worker receives a delivery and starts", Guard: "the delivery's epoch; it is due, within its deadline; it has no placement", Prevents: "an old or second delivery that starts the task again"},
		core.Move[task.State]{Name: MoveSucceed, From: []task.State{task.Running}, To: task.Succeeded, Intent: core.IntentEnd,
			Trigger: "the handler returned SUCCESS", Guard: "epoch, worker, the attempt runs", Prevents: "a late success of a worker that lost the task"},
		core.Move[task.State]{Name: MoveFail, From: []task.State{task.Running}, To: task.Failed, Intent: core.IntentEnd,
			Trigger: "the decider gives the task up", Guard: "epoch, worker, the attempt runs", Prevents: "a late failure over another worker's success"},
		core.Move[task.State]{Name: MoveTimeOut, From: []task.State{task.Running}, To: task.TimedOut, Intent: core.IntentEnd,
			Trigger: "the attempt timed out, and the decider gives the task up", Guard: "epoch, worker, the attempt runs", Prevents: "a late end over another worker's"},
		core.Move[task.State]{Name: MoveRetry, From: []task.State{task.Running}, To: task.RetryScheduled, Intent: core.IntentRelease,
			Trigger: "the decider tries again", Guard: "epoch, worker, the attempt runs", Prevents: "a retry while the attempt still runs"},
		core.Move[task.State]{Name: MoveLose, From: []task.State{task.Running}, To: task.RetryScheduled, Intent: core.IntentTake,
			Trigger: "the reaper: no heartbeat came", Guard: "the deadline to confirm has passed", Prevents: "the late end of the lost worker"},
		core.Move[task.State]{Name: MoveLoseForGood, From: []task.State{task.Running}, To: task.TimedOut, Intent: core.IntentTake,
			Trigger: "the reaper, if the decider gives the task up", Guard: "the deadline to confirm has passed", Prevents: "the late end of the lost worker"},
		core.Move[task.State]{Name: MoveDue, From: []task.State{task.RetryScheduled}, To: task.Pending, Intent: core.IntentTake,
			Trigger: "the time of the retry has come", Guard: "next_run_at has passed", Prevents: "an old delivery that starts the retry early"},
		core.Move[task.State]{Name: MoveOrphan, From: []task.State{task.Assigned}, To: task.Orphaned, Intent: core.IntentTake,
			Trigger: "the leader: the worker disappeared before it started", Guard: "the leader's epoch; assigned too long ago, and the worker is gone or stopping", Prevents: "a start by the worker that was given up"},
		core.Move[task.State]{Name: MoveRedeliver, From: waiting, To: task.Pending, Intent: core.IntentTake,
			Trigger: "the leader: the engine lost the delivery", Guard: "it waited too long", Prevents: "two deliveries that both start the task"},
		core.Move[task.State]{Name: MoveRerun, From: []task.State{task.Failed, task.TimedOut, task.Canceled}, To: task.Pending, Intent: core.IntentTake,
			Trigger: "an operator", Guard: "the worker has released it, or its lease has expired", Prevents: "an attempt while another still runs; a rerun of a success"},
		core.Move[task.State]{Name: MoveRerunLater, From: []task.State{task.Failed, task.TimedOut, task.Canceled}, To: task.RetryScheduled, Intent: core.IntentTake,
			Trigger: "a restart of the step that waits for its group", Prevents: "an attempt while another still runs; a rerun of a success"},
		core.Move[task.State]{Name: MoveCancel, From: append([]task.State{task.Running}, idle...), To: task.Canceled, Intent: core.IntentEnd,
			Trigger: "a user, or the cancellation of the group", Prevents: "a success that is recorded after the cancellation"},
		core.Move[task.State]{Name: MoveDeadline, From: idle, To: task.TimedOut, Intent: core.IntentEnd,
			Trigger: "the deadline of the group has passed", Guard: "the deadline has passed", Prevents: "a start after the deadline"},
	)
	if err != nil {
		panic(err) // the table above is wrong
	}
	return m
}
