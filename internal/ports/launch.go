package ports

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// LaunchRequest requests a new execution.
type LaunchRequest struct {
	JobName     string
	Params      core.Parameters
	Definition  core.Definition
	Restartable bool
	Owner       core.Owner
	Lease       time.Duration
	// Dead reports whether an owner is known to be dead: its execution is then taken over before its
	// lease expires. nil means that no owner is.
	Dead func(core.Owner) bool
	// ForWorkers makes an execution that is PARKED and has no owner: a worker begins it.
	ForWorkers bool
	// Exclusive is the key that no other active execution of the job may have; "" lets any run in
	// parallel.
	Exclusive core.ExclusiveKey
	// RedriveOf is the execution of the skipped items that the new one redrives; 0 means none.
	RedriveOf core.JobExecutionID
	// On restricts the workers that may continue the execution; nil means any.
	On *core.Placement
	// Task is the task that runs the job; 0 means none.
	Task int64
	// Parent is the execution that runs the new one as a step; 0 means none.
	Parent core.JobExecutionID
	// ParentCall and ParentAnew are as in Job.
	ParentCall core.StepExecutionID
	ParentAnew core.JobExecutionID
	// Confinement is as in Job.
	Confinement *core.Confinement
	// Backfill marks an instance that the launch makes: the next instance does not follow it
	// (rule L3a).
	Backfill bool
	// FromStart makes an attempt that resumes nothing of earlier ones: its job context has only
	// FromStartKey.
	FromStart bool
	// From makes an attempt that resumes nothing of earlier ones, but keeps the work in its journal;
	// nil means none.
	From *LaunchFrom
	// Actor requested the launch from the owner, for the audit; "" means the owner itself.
	Actor string
	// Reason is the actor's, for the audit.
	Reason string
	// Bound: the launch is refused with a *MovedError in another state; nil means in none.
	Bound *Bound
	// Request is the client request that the launch serves; zero means none. A *RequestStartedError if
	// it has started an execution before.
	Request RequestKey
	// New means that the instance has just not been found.
	New bool
	// Again means that the reply to the same request was lost: the execution may exist already. Owner
	// must be the owner of this one launch.
	Again bool
}

// LaunchFrom makes an attempt that keeps a part of the earlier attempts' work. Its job context is
// theirs, with FromStartKey.
type LaunchFrom struct {
	// After is the newest execution of the instance, from which the attempt was made: with another one
	// the launch is refused with a *NotNewestError.
	After core.JobExecutionID
	// IfComplete lets it follow an execution that completed.
	IfComplete bool
	// Visits are stored with the launch: the work that the attempt keeps.
	Visits []FlowVisit
}

// Launched is a new execution.
type Launched struct {
	Execution *core.JobExecution
	// Previous is the instance's execution before this one; nil for the first.
	Previous *core.JobExecution
	// TookOver means that Previous was running and its owner was dead or its lease expired; it is
	// FAILED now.
	TookOver bool
}

// Launches creates executions and takes over lost ones.
type Launches interface {
	// Launch makes or finds the instance and creates an execution in STARTING, in
	// one transaction and with a number of statements that does not depend on the
	// history. It refuses with *InstanceCompleteError, *AlreadyRunningError,
	// ErrNotRestartable, ErrAbandoned, ErrUnknownStatus, or ErrIllegalState for an
	// instance that has no execution. A step that is unfinished though its job is
	// over is an *AlreadyRunningError as well. Another execution that runs with the same
	// key is an *ExclusiveError (rule L12), and parameters that named another instance before are a *FormerInstanceError (rule D5). Of two processes at once
	// exactly one succeeds (rule L1); an expired lease or dead owner is taken over
	// in the same transaction (rules L2, L5).
	Launch(ctx context.Context, req LaunchRequest) (Launched, error)
	// CheckExclusive returns the *ExclusiveError that refuses a launch with the key now, or nil. dead
	// is as in LaunchRequest.
	CheckExclusive(ctx context.Context, jobName string, key core.ExclusiveKey, dead func(core.Owner) bool) error
	// CheckFormer returns the *FormerInstanceError that refuses a launch with these parameters; nil: none does.
	CheckFormer(ctx context.Context, jobName string, params core.Parameters) error
	// Heartbeat extends the lease from now (the database's clock, rule L6) and reads
	// the stop flag. ErrLostOwner if the guard finds no row.
	Heartbeat(ctx context.Context, ref JobRef, lease time.Duration) (stop bool, err error)
	// WriterHeld is how long this process has held the writer of a database that has one: meanwhile no
	// other process can write, and take an execution over (rule L9).
	WriterHeld() time.Duration
}

// Stops requests executions to stop.
type Stops interface {
	// RequestStop requests the owner of a running execution to stop, from any process, and with it the
	// owners of the child jobs that it runs. The audit names the actor.
	RequestStop(ctx context.Context, id core.JobExecutionID, by By) (core.Answer, error)
}
