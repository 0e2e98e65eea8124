package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Repository keeps tasks. Every method works in the transaction that ctx carries for the
// repository's database, else in one of its own, and reads the database's clock. A method
// that returns deliveries has made tasks wait for a worker: its caller hands them to the
// engine in the same transaction.
type Repository interface {
	Submissions
	Executions
	Maintenance
	Queries
	Notes
	// Places are the tasks with a placement: PENDING or ORPHANED, ASSIGNED by MoveAssign, and ORPHANED by MoveOrphan.
	core.Places
}

// Submissions is what users of tasks ask for.
type Submissions interface {
	// Submit stores a group and its tasks. Where the group's idempotency key, or a task's,
	// is known, the answer is what was stored then, and Duplicate says so; an
	// ErrOtherSubmission where that was something else.
	Submit(ctx context.Context, s Submission) (*Submitted, []Delivery, error)
	// Cancel makes MoveCancel, in the name of actor. A worker that executes the task hears of
	// it at its next heartbeat. Tasks that wait for it are canceled with it.
	Cancel(ctx context.Context, id ID, actor, reason string) (core.Answer, error)
	// CancelGroup notes that the cancellation was requested, and cancels what is unfinished.
	// A group that is over is a *GroupOverError.
	CancelGroup(ctx context.Context, id GroupID, actor, reason string) (core.Answer, error)
	// Rerun makes MoveRerun. The attempts of the task and of its group are counted from zero
	// again, and kept; the deadline of the group does not hold for the task any more, and the
	// cancellation of the group is withdrawn. A task that waits for others makes MoveWaitAgain, and
	// so do those that were canceled because of it, unless another one that they wait for has
	// ended without success: then the rerun is refused.
	Rerun(ctx context.Context, id ID, actor, reason string) (core.Answer, []Delivery, error)
	// Continue makes MoveRerun of all tasks of a group that ended without success, for a step
	// that waits for the group from now on, and withdraws the cancellation of the group. It makes
	// MoveRerunLater of those that their workers have not let go of, and MoveWaitAgain of those that
	// wait for others. The budget of the group
	// begins anew: attempts and deadline are counted from now on.
	Continue(ctx context.Context, id GroupID, step core.StepExecutionID, actor, reason string) ([]Delivery, error)
}

// Executions is what a worker asks for.
type Executions interface {
	// Claim makes MoveClaim, in the epoch of a delivery, and begins an attempt. Of a task
	// that another one has, that is over, or that has another epoch, the answer is
	// core.Duplicate or an error as of guard.Table. A worker that executes it itself, in that
	// epoch, gets Claimed beside core.Duplicate: its first answer was lost. A task beyond the
	// budget of its group ends instead: Claimed is nil and the answer core.Applied. A task of a
	// group whose decider the worker lacks stays: a *NoDeciderError.
	Claim(ctx context.Context, d Delivery, by Claimant) (*Claimed, core.Answer, error)
	// Start is Claim of a task with a placement, which the leader has assigned to the worker (AssignPlaced): it makes
	// MoveStart. It is refused where Claim would be: past the deadline, and after a stop was requested (rule L13).
	Start(ctx context.Context, d Delivery, by Claimant) (*Claimed, core.Answer, error)
	// End ends the attempt with an outcome, and makes MoveSucceed, MoveFail, MoveTimeOut or
	// MoveRetry by what decide says of an outcome that is not a success. What waits for the task is
	// opened, or canceled: the caller hands Ended.Opened to the engine.
	End(ctx context.Context, ref Ref, o Outcome, decide Decide) (Ended, error)
	// Heartbeat extends the lease of the worker and of all that it executes.
	Heartbeat(ctx context.Context, by Claimant, held []Ref) (Confirmed, error)
	// Leave notes that a worker has stopped.
	Leave(ctx context.Context, worker string) error
	// Due returns deliveries that wait, of the types and of groups that name no decider or one
	// of deciders, oldest first within a priority.
	Due(ctx context.Context, types, deciders []string, limit int) ([]Delivery, error)
	// DueOf is Due of one group, whatever the types.
	DueOf(ctx context.Context, group GroupID, limit int) ([]Delivery, error)
}

// Maintenance is what any process, or the leader, does for all. Every method does at most
// limit rows, locks none that another process works on, and returns how many it did or the
// deliveries that result.
type Maintenance interface {
	// MakeDue makes MoveDue of retries whose time has come.
	MakeDue(ctx context.Context, limit int) ([]Delivery, error)
	// Confirm marks executions whose heartbeat is overdue (continuation_state CONFIRMING).
	Confirm(ctx context.Context, limit int) (int, error)
	// Reap makes MoveLose or MoveLoseForGood of executions whose owner has not confirmed by
	// its deadline. Those of groups that name none of deciders stay until the deadline of their
	// group.
	Reap(ctx context.Context, limit int, deciders []string, decide Decide) (int, error)
	// ExpireDeadlines makes MoveDeadline of tasks that nobody executes, past the deadline of
	// their group.
	ExpireDeadlines(ctx context.Context, limit int) (int, error)
	// Waiting returns deliveries that have waited longer than after, for an engine to say
	// which of them it lost, and Redeliver makes MoveRedeliver of those.
	Waiting(ctx context.Context, after time.Duration, limit int) ([]Delivery, error)
	Redeliver(ctx context.Context, lost []Delivery) ([]Delivery, error)
	// OpenLeft opens and cancels tasks that wait though all that they wait for is over: a worker of
	// a program that does not know of such tasks ended the last one.
	OpenLeft(ctx context.Context, limit int) ([]Delivery, error)
}

// Queries is what can be asked. An id that is not known is core.ErrNotFound.
type Queries interface {
	Task(ctx context.Context, id ID) (*Task, error)
	Tasks(ctx context.Context, f Filter) ([]Task, error)
	Group(ctx context.Context, id GroupID) (*Group, error)
	Groups(ctx context.Context, before GroupID, limit int) ([]Group, error)
	Attempts(ctx context.Context, id ID) ([]Attempt, error)
	Decisions(ctx context.Context, id ID) ([]DecisionRecord, error)
	Workers(ctx context.Context) ([]Worker, error)
	// WaitingTypes returns the types of tasks that wait to be executed, sorted.
	WaitingTypes(ctx context.Context) ([]string, error)
	// WaitingDeciders returns the deciders that groups with tasks that are not over name and no
	// live worker has, with the numbers of these tasks, by name.
	WaitingDeciders(ctx context.Context) ([]WaitingDecider, error)
	// Results returns the values of the Json artifacts of a group's tasks, of the attempt that
	// succeeded, in the order of the submission: for a task with several the last one, and null
	// for one that has none or did not succeed. nil where they have more than limit bytes.
	Results(ctx context.Context, id GroupID, limit int) ([]json.RawMessage, error)
	// Unsuccessful returns tasks of a group that ended without success, in the order of the
	// submission.
	Unsuccessful(ctx context.Context, id GroupID, limit int) ([]Task, error)
	// OpenGroupsOf returns the groups with tasks that are not over of the steps of a job instance.
	OpenGroupsOf(ctx context.Context, instance core.JobInstanceID) ([]GroupID, error)
	// OpenGroupsBefore returns those of the same step of the instance, from before this step
	// execution.
	OpenGroupsBefore(ctx context.Context, step core.StepExecutionID) ([]GroupID, error)
	// GroupOf returns the group that was submitted with an idempotency key; 0: there is none.
	GroupOf(ctx context.Context, key string) (GroupID, error)
}

// Decide says what comes after an attempt that did not succeed.
type Decide func(c Case) (policy string, d Decision)

// Submission is a group of tasks. It may not be empty.
type Submission struct {
	Title string `json:"title,omitempty"`
	Tasks []Spec `json:"tasks"`
	// Type is that of tasks which have none of their own.
	Type           string `json:"type,omitempty"`
	Budget         Budget `json:"budget"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// Decider names a registered decider; "": the default one.
	Decider string `json:"decider,omitempty"`
	// Step is the step of a job that waits for the group; 0: none does. It is not part of what
	// an idempotency key stands for: a restart of the step is another step execution.
	Step core.StepExecutionID `json:"-"`
}

// Check reports everything that is wrong with the texts of the group. Its tasks and its budget have
// checks of their own.
func (s Submission) Check() error {
	var errs []error
	for _, text := range []boundedText{
		{"title", s.Title, maxTitle}, {"type", s.Type, maxType}, {"idempotency_key", s.IdempotencyKey, maxGroupKey}, {"decider", s.Decider, maxType},
	} {
		errs = append(errs, text.check())
	}
	return errors.Join(errs...)
}

// ErrOtherSubmission says that an idempotency key was used for another submission.
var ErrOtherSubmission = errors.New("the idempotency key was used for something else")

// Submitted is the answer to a submission.
type Submitted struct {
	Group     GroupID `json:"group"`
	Tasks     []ID    `json:"tasks"` // in the order of the submission
	Duplicate bool    `json:"duplicate,omitempty"`
}

// Delivery says that a task waits for a worker, in an epoch.
type Delivery struct {
	ID       ID
	Epoch    int64
	Type     string
	Priority int
	// NotBefore is the time before which it is not to be delivered: that of a retry, or of
	// the submission where it is delivered anew and due. Those of a priority go in the order
	// of it. Zero: now.
	NotBefore time.Time
}

// Claimant is a worker. Lease is how long it owns what it claims without a heartbeat, Grace
// how much longer no other one takes it over, as its last heartbeat was answered.
type Claimant struct {
	Worker   string
	Capacity int
	Types    []string
	// Deciders are the names of those that it has: it claims tasks of groups that name one of
	// them, or none.
	Deciders []string
	// Parts says that it takes parts of steps, and continues parked executions; Owner is that of the parts.
	Parts   bool
	Owner   string
	Version string
	// Labels are compared with placements.
	Labels map[string]string
	// Resuming is how many slots have parked executions without a placement, which it continues.
	Resuming int
	// Draining says that it is being stopped, and begins nothing more.
	Draining     bool
	Lease, Grace time.Duration
}

// Decides reports whether the worker may decide for a group that names a decider; "": the
// default one, which every worker has.
func (c Claimant) Decides(decider string) bool {
	return decider == "" || slices.Contains(c.Deciders, decider)
}

// NoDeciderError refuses a claim: the worker lacks the decider that the group names, and no
// other one may decide what becomes of its attempts. The task waits for a worker that has it.
type NoDeciderError struct{ Decider string }

// Error names the decider.
func (e *NoDeciderError) Error() string {
	return fmt.Sprintf("its group names the decider %q, which this worker does not have: it waits for one that does", e.Decider)
}

// Ref is what a worker says of the attempt that it executes.
type Ref struct {
	ID      ID
	Attempt AttemptID
	Worker  string
	Epoch   int64
	// Group is that of the task, where its end concerns others: a step of a job waits for the
	// group, or (Ordered) tasks of the group wait for others of it. 0: none of it.
	Group   GroupID
	Ordered bool
}

// Claimed is what a worker executes.
type Claimed struct {
	Task    Task
	Ref     Ref
	Decider string
	// Deadline is the time left until the group's deadline, at the moment of the claim; 0:
	// there is none.
	Deadline time.Duration
}

// Ended is what End came to.
type Ended struct {
	Answer   core.Answer
	State    State
	Decision *Decision
	// Opened are deliveries of tasks that waited for this one.
	Opened []Delivery
}

// Confirmed is the answer to a heartbeat.
type Confirmed struct {
	// Lost is what the worker does not own any more.
	Lost []Lost
	// Grace is how long after its lease what the worker executes is left to it, from this
	// heartbeat on (the setting continuation_grace).
	Grace time.Duration
}

// Lost is an execution that a worker does not own any more. Cause is ErrCanceled, or
// core.ErrLostOwner.
type Lost struct {
	Ref   Ref
	Cause error
}

// Filter selects tasks, newest first. Zero fields select all.
type Filter struct {
	Group  GroupID
	State  State
	Type   string
	Before ID
	// JobDefinition selects the runs of a registered job that its schedule asked for.
	JobDefinition int64
	// Unfinished selects those that are not over.
	Unfinished bool
	Limit      int // 0: 100
}

// Group is what was submitted together.
type Group struct {
	GroupStatus
	Title             string     `json:"title,omitempty"`
	Budget            Budget     `json:"budget"`
	Decider           string     `json:"decider,omitempty"`
	CancelRequestedAt *time.Time `json:"cancel_requested_at,omitempty"`
	DeadlineAt        *time.Time `json:"deadline_at,omitempty"`
	CreatedAt         time.Time  `json:"created_at"`
	UpdatedAt         time.Time  `json:"updated_at"`
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
	ID        AttemptID    `json:"id"`
	TaskID    ID           `json:"task_id"`
	Number    int          `json:"number"` // 1, 2, ... of the task, over all its re-runs
	State     AttemptState `json:"state"`
	Worker    string       `json:"worker"`
	Action    Spec         `json:"action"` // what the handler was given
	Outcome   *Outcome     `json:"outcome,omitempty"`
	Reason    string       `json:"reason,omitempty"`
	StartedAt time.Time    `json:"started_at"`
	EndedAt   *time.Time   `json:"ended_at,omitempty"`
	// JobExecution is that of a task of type job; 0: none.
	JobExecution core.JobExecutionID `json:"job_execution_id,omitempty"`
}

// DecisionRecord is why something came next.
type DecisionRecord struct {
	TaskID    ID        `json:"task_id"`
	Attempt   AttemptID `json:"attempt_id,omitempty"`
	Trigger   string    `json:"trigger"` // the kind of the outcome, "lost_owner", "deadline" or "budget"
	Policy    string    `json:"policy"`  // the decider's name
	Decision  Decision  `json:"decision"`
	Spent     Spent     `json:"spent"`
	DecidedAt time.Time `json:"decided_at"`
}

// WaitingDecider is a decider that tasks wait for.
type WaitingDecider struct {
	Name  string `json:"name"`
	Tasks int    `json:"tasks"`
}

// WorkerActive is the state of a worker that is alive, WorkerDraining of one that is being stopped.
const (
	WorkerActive   = "ACTIVE"
	WorkerDraining = "DRAINING"
)

// Worker is a process that executes tasks.
type Worker struct {
	Name     string   `json:"name"`
	Capacity int      `json:"capacity"`
	Types    []string `json:"types"`
	Deciders []string `json:"deciders"`
	Parts    bool     `json:"parts"` // it takes parts of steps, and continues parked executions
	Version  string   `json:"version"`
	State    string   `json:"state"` // ACTIVE, DRAINING (it is being stopped), GONE (it left), LOST (its lease ended)
	// Labels are compared with placements.
	Labels    map[string]string `json:"labels,omitempty"`
	Executing int               `json:"executing"`
	// Busy is how many slots it uses, where it was asked for (rule PL3).
	Busy        int       `json:"-"`
	StartedAt   time.Time `json:"started_at"`
	HeartbeatAt time.Time `json:"heartbeat_at"`
}

// GroupOverError refuses to cancel a group of which nothing is unfinished.
type GroupOverError struct {
	ID    GroupID
	State GroupState
}

// Error says what the group is.
func (e *GroupOverError) Error() string {
	return "the group is " + string(e.State) + ": nothing of it is left to be cancelled"
}
