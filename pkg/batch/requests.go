package batch

import (
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/runtime"
)

// Requests and results of an [App]'s methods. They marshal to JSON.
type (
	// RunRequest names the job by Source, File or Name, and has its Params as texts. Again, Next and FromStart
	// choose another instance or attempt, AcceptChanges allows a changed definition.
	RunRequest = operator.RunRequest
	// RestartRequest has the Execution to resume, and the Params to change.
	RestartRequest = operator.RestartRequest
	// RedriveRequest has the Execution with skipped items, and items to replace in Edited.
	RedriveRequest = operator.RedriveRequest
	// PurgeRequest selects executions by Job, Statuses, EndedBefore and KeepLast.
	PurgeRequest = operator.PurgeRequest
	// Execution has ID, JobName, Status, ExitCode, Error, Params, times and the acts that are possible.
	Execution = operator.Execution
	// Running is a started execution: Execution, Stop, and Follow, which waits for its end.
	Running = operator.Running
	// Refusal is the error of a request that is not possible: a Reason, and acts that are.
	Refusal = operator.Refusal
)

// TaskService submits, reads, cancels and reruns tasks.
type TaskService = runtime.TaskService

// WorkOptions configure App.Work: Slots, Poll, Drain, Types, Labels, Report.
type WorkOptions = runtime.Options
