package taskports

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Repository stores tasks. Every method works in ctx's transaction, else its own, by the database's
// clock. The caller hands returned deliveries to the engine in the same transaction.
type Repository interface {
	Submissions
	Executions
	Maintenance
	Queries
	Notes
	ports.Places
}

// Submissions are the operations for users of tasks.
type Submissions interface {
	// Submit stores a group and its tasks. A known idempotency key returns the stored submission
	// (Duplicate), or ErrOtherSubmission.
	Submit(ctx context.Context, s task.Submission) (*task.Submitted, []Delivery, error)
	// Cancel makes MoveCancel, also of tasks that wait for it; a worker is notified at its next
	// heartbeat.
	Cancel(ctx context.Context, id task.ID, actor, reason string) (core.Answer, error)
	// CancelGroup cancels the unfinished tasks; *GroupOverError if the group is over.
	CancelGroup(ctx context.Context, id task.GroupID, actor, reason string) (core.Answer, error)
	// Rerun makes MoveRerun: attempts count from zero again, and are kept; the group's deadline no
	// longer applies, its cancellation is withdrawn. A task that waits for others makes
	// MoveWaitAgain, with those canceled because of it, unless another predecessor has ended
	// without success: then the rerun is refused.
	Rerun(ctx context.Context, id task.ID, actor, reason string) (core.Answer, []Delivery, error)
	// Continue reruns all unsuccessful tasks of a group for a step that waits for it: MoveRerun,
	// MoveRerunLater of tasks not released, MoveWaitAgain of waiting ones. The group's budget
	// starts over and its cancellation is withdrawn.
	Continue(ctx context.Context, id task.GroupID, step core.StepExecutionID, actor, reason string) ([]Delivery, error)
}

// Executions are the operations for workers.
type Executions interface {
	// Claim makes MoveClaim in a delivery's epoch, and begins an attempt. If another worker has the
	// task, it is over or in another epoch: core.Duplicate, or an error as of guard.Table. A worker
	// that executes it itself gets Claimed with core.Duplicate: its first answer was lost. Beyond
	// the group's budget the task ends: Claimed is nil, the answer core.Applied. It stays if the
	// worker lacks the decider: a *NoDeciderError.
	Claim(ctx context.Context, d Delivery, by Claimant) (*Claimed, core.Answer, error)
	// Start is Claim of an assigned task (MoveStart). It is refused past the deadline, and after a
	// stop request (rule L13).
	Start(ctx context.Context, d Delivery, by Claimant) (*Claimed, core.Answer, error)
	// End ends the attempt, by MoveSucceed or by decide's answer. The caller hands Ended.Opened to
	// the engine.
	End(ctx context.Context, ref Ref, o task.Outcome, decide Decide) (Ended, error)
	Heartbeat(ctx context.Context, by Claimant, held []Ref) (Confirmed, error)
	Leave(ctx context.Context, worker string) error
	Due(ctx context.Context, types, deciders []string, limit int) ([]Delivery, error)
	DueOf(ctx context.Context, group task.GroupID, limit int) ([]Delivery, error)
}

// Maintenance handles at most limit rows, skipping locked ones, and returns their number or the
// deliveries.
type Maintenance interface {
	MakeDue(ctx context.Context, limit int) ([]Delivery, error)
	Confirm(ctx context.Context, limit int) (int, error)
	// Reap makes MoveLose or MoveLoseForGood of unconfirmed executions. Groups of other deciders
	// stay until their deadline.
	Reap(ctx context.Context, limit int, deciders []string, decide Decide) (int, error)
	ExpireDeadlines(ctx context.Context, limit int) (int, error)
	Waiting(ctx context.Context, after time.Duration, limit int) ([]Delivery, error)
	Redeliver(ctx context.Context, lost []Delivery) ([]Delivery, error)
	// OpenLeft opens or cancels tasks after their predecessors are over, left by a program that does
	// not know them.
	OpenLeft(ctx context.Context, limit int) ([]Delivery, error)
}

// Queries are the read operations. An unknown ID is core.ErrNotFound.
type Queries interface {
	Task(ctx context.Context, id task.ID) (*task.Task, error)
	Tasks(ctx context.Context, f task.Filter) ([]task.Task, error)
	Group(ctx context.Context, id task.GroupID) (*task.Group, error)
	Groups(ctx context.Context, before task.GroupID, limit int) ([]task.Group, error)
	Attempts(ctx context.Context, id task.ID) ([]Attempt, error)
	Decisions(ctx context.Context, id task.ID) ([]DecisionRecord, error)
	Workers(ctx context.Context) ([]Worker, error)
	WaitingTypes(ctx context.Context) ([]string, error)
	// WaitingDeciders returns deciders that no live worker has, with the number of unfinished
	// tasks.
	WaitingDeciders(ctx context.Context) ([]WaitingDecider, error)
	// Results returns the Json artifacts of a group's tasks in order: the last one of the
	// successful attempt, or null. nil if they exceed limit bytes.
	Results(ctx context.Context, id task.GroupID, limit int) ([]json.RawMessage, error)
	// Unsuccessful returns tasks that ended without success, in order.
	Unsuccessful(ctx context.Context, id task.GroupID, limit int) ([]task.Task, error)
	OpenGroupsOf(ctx context.Context, instance core.JobInstanceID) ([]task.GroupID, error)
	OpenGroupsBefore(ctx context.Context, step core.StepExecutionID) ([]task.GroupID, error)
	GroupOf(ctx context.Context, key string) (task.GroupID, error)
}

// Decide decides about the next step after an attempt that did not succeed.
type Decide func(c task.Case) (policy string, d task.Decision)

// Delivery states that a task waits for a worker, in an epoch.
type Delivery struct {
	ID       task.ID
	Epoch    int64
	Type     string
	Priority int
	// NotBefore is the earliest delivery time, which orders a priority; zero means now.
	NotBefore time.Time
}

// Claimant is a worker. Lease is how long it owns work without a heartbeat, Grace how much longer
// no other takes it over.
type Claimant struct {
	Worker       string
	Capacity     int
	Types        []string
	Deciders     []string
	Parts        bool
	Owner        string
	Version      string
	Labels       map[string]string
	Resuming     int
	Draining     bool
	Lease, Grace time.Duration
}

// Decides reports whether the worker has the decider; "" is the default one.
func (c Claimant) Decides(decider string) bool {
	return decider == "" || slices.Contains(c.Deciders, decider)
}

// NoDeciderError refuses a claim: the worker lacks the group's decider; the task waits for another.
type NoDeciderError struct{ Decider string }

// Error names the decider.
func (e *NoDeciderError) Error() string {
	return fmt.Sprintf("its group names the decider %q, which this worker does not have: it waits for one that does", e.Decider)
}

// Ref identifies the attempt that a worker executes.
type Ref struct {
	ID      task.ID
	Attempt task.AttemptID
	Worker  string
	Epoch   int64
	// Group is set if the task's end affects others: a job's step, or (Ordered) other tasks; else
	// 0.
	Group   task.GroupID
	Ordered bool
}

// Claimed is the work that a worker executes.
type Claimed struct {
	Task    task.Task
	Ref     Ref
	Decider string
	// Deadline is the time left at the claim; 0 means none.
	Deadline time.Duration
}

// Ended is the result of End.
type Ended struct {
	Answer   core.Answer
	State    task.State
	Decision *task.Decision
	Opened   []Delivery
}

// Confirmed is the answer to a heartbeat.
type Confirmed struct {
	Lost  []Lost
	Grace time.Duration
}

// Lost is an execution no longer owned; Cause is ErrCanceled, or core.ErrLostOwner.
type Lost struct {
	Ref   Ref
	Cause error
}

// AttemptState is the state of an attempt.
type AttemptState string

// The states of an attempt.
const (
	AttemptRunning AttemptState = "RUNNING"
	AttemptSuccess AttemptState = "SUCCESS"
	AttemptFailed  AttemptState = "FAILED"
)

// Attempt is one execution of a task.
type Attempt struct {
	ID           task.AttemptID      `json:"id"`
	TaskID       task.ID             `json:"task_id"`
	Number       int                 `json:"number"` // 1, 2, ... of the task, over all its re-runs
	State        AttemptState        `json:"state"`
	Worker       string              `json:"worker"`
	Action       task.Spec           `json:"action"` // the handler's input
	Outcome      *task.Outcome       `json:"outcome,omitempty"`
	Reason       string              `json:"reason,omitempty"`
	StartedAt    time.Time           `json:"started_at"`
	EndedAt      *time.Time          `json:"ended_at,omitempty"`
	JobExecution core.JobExecutionID `json:"job_execution_id,omitempty"`
}

// DecisionRecord is the recorded reason of a decision.
type DecisionRecord struct {
	TaskID    task.ID        `json:"task_id"`
	Attempt   task.AttemptID `json:"attempt_id,omitempty"`
	Trigger   string         `json:"trigger"` // the kind of the outcome, "lost_owner", "deadline" or "budget"
	Policy    string         `json:"policy"`  // the decider's name
	Decision  task.Decision  `json:"decision"`
	Spent     task.Spent     `json:"spent"`
	DecidedAt time.Time      `json:"decided_at"`
}

// WaitingDecider is a decider that tasks wait for.
type WaitingDecider struct {
	Name  string `json:"name"`
	Tasks int    `json:"tasks"`
}

// WorkerActive is the state of a live worker, WorkerDraining of a stopping one.
const (
	WorkerActive   = "ACTIVE"
	WorkerDraining = "DRAINING"
)

// Worker is a process that executes tasks.
type Worker struct {
	Name      string            `json:"name"`
	Capacity  int               `json:"capacity"`
	Types     []string          `json:"types"`
	Deciders  []string          `json:"deciders"`
	Parts     bool              `json:"parts"` // takes parts of steps, and continues parked executions
	Version   string            `json:"version"`
	State     string            `json:"state"` // ACTIVE, DRAINING (stopping), GONE (it left), LOST (its lease ended)
	Labels    map[string]string `json:"labels,omitempty"`
	Executing int               `json:"executing"`
	// Busy is the number of used slots, if requested (rule PL3).
	Busy        int       `json:"-"`
	StartedAt   time.Time `json:"started_at"`
	HeartbeatAt time.Time `json:"heartbeat_at"`
}
