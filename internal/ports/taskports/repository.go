package taskports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Repository has the ports of the tasks of one database. A client takes the ports that it uses; a
// decorator replaces a field.
//
// Every method works in the transaction that ctx carries for the repository's database, else in one of
// its own, and reads the database's clock. A method that returns deliveries has made tasks wait for a
// worker: its caller hands them to the engine in the same transaction. An unknown ID is core.ErrNotFound.
type Repository struct {
	Submissions
	Executions
	Deliveries
	Maintenance
	TaskQueries
	GroupQueries
	WorkerQueries
	// Places are the tasks with a placement: PENDING or ORPHANED, ASSIGNED by MoveAssign, and ORPHANED by MoveOrphan.
	ports.Places
	Leadership
	Settings
	Notes
	Logs
	Purges
}

// Submissions are the operations for users of tasks.
type Submissions interface {
	// Submit stores a group and its tasks. If the group's or a task's idempotency key is known, it
	// returns the stored submission, marked Duplicate, or an ErrOtherSubmission if that was a different
	// one.
	Submit(ctx context.Context, s task.Submission) (*task.Submitted, []Delivery, error)
	// Cancel makes MoveCancel, in the name of actor. A worker that executes the task is notified at its
	// next heartbeat. Tasks that wait for it are canceled with it.
	Cancel(ctx context.Context, id task.ID, actor, reason string) (core.Answer, []Delivery, error)
	// CancelGroup notes that the cancellation was requested, and cancels the unfinished tasks. A group
	// that is over is a *GroupOverError.
	CancelGroup(ctx context.Context, id task.GroupID, actor, reason string) (core.Answer, error)
	// Rerun makes MoveRerun. The attempts of the task and of its group count from zero again, and are
	// kept; the deadline of the group no longer applies to the task, and the cancellation of the group
	// is withdrawn. A task that waits for others makes MoveWaitAgain, and so do those that were
	// canceled because of it, unless another one that they wait for has ended without success: then the
	// rerun is refused.
	Rerun(ctx context.Context, id task.ID, actor, reason string) (core.Answer, []Delivery, error)
	// Continue makes MoveRerun of all tasks of a group that ended without success, for a step that
	// waits for the group from now on, and withdraws the cancellation of the group. It makes
	// MoveRerunLater of tasks that their workers have not released, and MoveWaitAgain of tasks that
	// wait for others. The budget of the group starts over: attempts and deadline count from now on.
	Continue(ctx context.Context, id task.GroupID, step core.StepExecutionID, actor, reason string) ([]Delivery, error)
}

// Executions are the operations for workers.
type Executions interface {
	// Claim makes MoveClaim, in the epoch of a delivery, and begins an attempt. If another worker has
	// the task, it is over, or it has another epoch, the answer is core.Duplicate or an error as of
	// guard.Table. A worker that itself executes it in that epoch gets Claimed with core.Duplicate: its
	// first answer was lost. A task beyond the budget of its group ends instead: Claimed is nil and the
	// answer core.Applied. A task stays if the worker lacks its group's decider: a *NoDeciderError.
	Claim(ctx context.Context, d Delivery, by Claimant) (*Claimed, core.Answer, error)
	// Start is Claim of a task with a placement, which the leader has assigned to the worker (AssignPlaced): it makes
	// MoveStart. It is refused if Claim would be: past the deadline, and after a stop was requested (rule L13).
	Start(ctx context.Context, d Delivery, by Claimant) (*Claimed, core.Answer, error)
	// End ends the attempt with an outcome, and makes MoveSucceed, MoveFail, MoveTimeOut or MoveRetry
	// according to decide's answer for an outcome other than success. Tasks that wait for it are
	// opened, or canceled: the caller hands Ended.Opened to the engine.
	End(ctx context.Context, ref Ref, o task.Outcome, decide Decide) (Ended, error)
	// Heartbeat extends the lease of the worker and of everything it executes.
	Heartbeat(ctx context.Context, by Claimant, held []Ref) (Confirmed, error)
	// Leave notes that a worker has stopped.
	Leave(ctx context.Context, worker string) error
}

// Deliveries are the tasks that wait for a worker, for engines without a table of their own.
type Deliveries interface {
	// Due returns waiting deliveries of the types, of groups that name no decider or one of deciders,
	// oldest first within a priority.
	Due(ctx context.Context, types, deciders []string, limit int) ([]Delivery, error)
	// DueOf is Due for one group and all types.
	DueOf(ctx context.Context, group task.GroupID, limit int) ([]Delivery, error)
}

// Maintenance holds the operations that any process, or the leader, performs for all. Every method
// handles at most limit rows, locks none that another process works on, and returns the number of rows
// or the resulting deliveries.
type Maintenance interface {
	// MakeDue makes MoveDue of retries that are due.
	MakeDue(ctx context.Context, limit int) ([]Delivery, error)
	// Confirm marks executions with an overdue heartbeat (continuation_state CONFIRMING).
	Confirm(ctx context.Context, limit int) (int, error)
	// Reap makes MoveLose or MoveLoseForGood of executions not confirmed by their owner by its
	// deadline. Executions of groups that name none of deciders stay until the deadline of their group.
	Reap(ctx context.Context, limit int, deciders []string, decide Decide) (int, error)
	// ExpireDeadlines makes MoveDeadline of tasks that no worker executes, past the deadline of their
	// group.
	ExpireDeadlines(ctx context.Context, limit int) (int, error)
	// Waiting returns deliveries that have waited longer than after, so that an engine can report the
	// lost ones; Redeliver makes MoveRedeliver of those.
	Waiting(ctx context.Context, after time.Duration, limit int) ([]Delivery, error)
	Redeliver(ctx context.Context, lost []Delivery) ([]Delivery, error)
	// OpenLeft opens and cancels tasks that wait although all their predecessors are over, and opens tasks of groups
	// with fewer begun than they may have: a worker was lost for good, or its program does not know such tasks.
	OpenLeft(ctx context.Context, limit int) ([]Delivery, error)
}

// TaskQueries read tasks and their attempts.
type TaskQueries interface {
	Task(ctx context.Context, id task.ID) (*task.Task, error)
	Tasks(ctx context.Context, f task.Filter) ([]task.Task, error)
	Attempts(ctx context.Context, id task.ID) ([]Attempt, error)
	Decisions(ctx context.Context, id task.ID) ([]DecisionRecord, error)
	// Search is Tasks in pages: none of its statements reads more than MostSearched tasks, and it ends after about
	// the time of the budget. next is the Before of the next page; 0 means that all was searched.
	Search(ctx context.Context, f task.Filter, budget time.Duration) (list []task.Task, next task.ID, err error)
	// Log returns a page of an output of an attempt.
	Log(ctx context.Context, f LogFilter) (*TaskLog, error)
}

// LogFilter selects a page of the output of a task.
type LogFilter struct {
	Task task.ID
	// Attempt 0 means the newest one that has outputs.
	Attempt int
	// Output is a kind of artifacts; "" means the first one that there is.
	Output task.ArtifactKind
	// From is the first character, Limit their number, in the text that Mask returns.
	From, Limit int
	// Mask hides secrets: before the text is cut, or a reader could read one in pieces. nil hides nothing.
	Mask func(text string) string
}

// TaskLog is a page of an output of an attempt.
type TaskLog struct {
	Task    task.ID      `json:"task"`
	Attempt int          `json:"attempt" doc:"The attempt with this output; 0 if none has one"`
	Outputs []TaskOutput `json:"outputs" doc:"All outputs, of the newest attempt first"`
	Output  string       `json:"output,omitempty" doc:"Stdout or Stderr"`
	Text    string       `json:"text"`
	From    int          `json:"from" doc:"The number of characters before this page"`
	Next    int          `json:"next,omitempty" doc:"from of the next page; absent on the last one"`
}

// TaskOutput is a text that an attempt has left.
type TaskOutput struct {
	Attempt    int               `json:"attempt"`
	Output     task.ArtifactKind `json:"output"`
	Characters int               `json:"characters" doc:"Its length; 0 if it was moved out of the database"`
}

// GroupQueries read groups.
type GroupQueries interface {
	Group(ctx context.Context, id task.GroupID) (*task.Group, error)
	Groups(ctx context.Context, before task.GroupID, limit int) ([]task.Group, error)
	// Results returns the values of the Json artifacts of a group's tasks, from the attempt that
	// succeeded, in the order of the submission: for a task with several the last one, and null for one
	// that has none or did not succeed. nil if they exceed limit bytes.
	Results(ctx context.Context, id task.GroupID, limit int) ([]json.RawMessage, error)
	// Unsuccessful returns tasks of a group that ended without success, in the order of the
	// submission.
	Unsuccessful(ctx context.Context, id task.GroupID, limit int) ([]task.Task, error)
	// OpenGroupsOf returns the groups with unfinished tasks of the steps of a job instance.
	OpenGroupsOf(ctx context.Context, instance core.JobInstanceID) ([]task.GroupID, error)
	// OpenGroupsBefore returns the open groups of the same step of the instance, from before this step
	// execution.
	OpenGroupsBefore(ctx context.Context, step core.StepExecutionID) ([]task.GroupID, error)
	// GroupOf returns the group that was submitted with an idempotency key, or 0.
	GroupOf(ctx context.Context, key string) (task.GroupID, error)
}

// WorkerQueries read the workers, and the work that waits for one.
type WorkerQueries interface {
	Workers(ctx context.Context) ([]Worker, error)
	// PartWorkers returns the number of live workers that take partitions of steps and continue parked
	// executions.
	PartWorkers(ctx context.Context) (int, error)
	// WaitingTypes returns the types of tasks that wait to be executed, by name.
	WaitingTypes(ctx context.Context) ([]WaitingType, error)
	// Held returns the work that processes hold, at most MostHeld pieces of each kind. It searches the first
	// MostSearched open parts: more means that there may be others.
	Held(ctx context.Context) (held []Held, more bool, err error)
	// WaitingDeciders returns the deciders that groups with unfinished tasks name and no live worker
	// has, with the numbers of these tasks, by name.
	WaitingDeciders(ctx context.Context) ([]WaitingDecider, error)
}

// Waiters notifies the steps of jobs that wait for groups.
type Waiters interface {
	// TasksEnded is called in the transaction that ended tasks of a group, after all its other
	// writes, with the step that waits for the group.
	TasksEnded(ctx context.Context, step core.StepExecutionID) error
}

// ErrOtherSubmission means that the key was used for another one.
var ErrOtherSubmission = errors.New("the idempotency key was used for another submission")

// Decide decides about the next step after an attempt that did not succeed.
type Decide func(c task.Case) (policy string, d task.Decision)

// Delivery states that a task waits for a worker, in an epoch.
type Delivery struct {
	ID       task.ID
	Epoch    int64
	Type     string
	Priority int
	// NotBefore is the earliest time of delivery: the time of a retry, or the time of the submission if
	// it is delivered again and due. It orders the deliveries of a priority. Zero means now.
	NotBefore time.Time
}

// Claimant is a worker. Lease is how long it owns claimed work without a heartbeat, Grace how much
// longer no other worker takes it over, according to its last heartbeat's answer.
type Claimant struct {
	Worker   string
	Capacity int
	Types    []string
	// Deciders are the names of its deciders: it claims tasks of groups that name one of them, or none.
	Deciders []string
	// Parts means that it takes parts of steps, and continues parked executions; Owner is the owner of
	// the parts.
	Parts   bool
	Owner   string
	Version string
	// Labels are compared with placements.
	Labels map[string]string
	// Resuming is the number of slots used by parked executions without a placement that it continues.
	Resuming int
	// Draining means that it is stopping and begins nothing more.
	Draining     bool
	Lease, Grace time.Duration
}

// Decides reports whether the worker may decide for a group that names a decider; "" means the default
// one, which every worker has.
func (c Claimant) Decides(decider string) bool {
	return decider == "" || slices.Contains(c.Deciders, decider)
}

// NoDeciderError refuses a claim: the worker lacks the decider that the group names, and no other may
// decide about its attempts. The task waits for a worker that has it.
type NoDeciderError struct{ Decider string }

// Error names the decider.
func (e *NoDeciderError) Error() string {
	return fmt.Sprintf("its group names the decider %q, which this worker does not have: it waits for one that does", e.Decider)
}

// AttemptID is the ID of one execution of a task.
type AttemptID int64

// Ref identifies the attempt that a worker executes.
type Ref struct {
	ID      task.ID
	Attempt AttemptID
	Worker  string
	Epoch   int64
	// Group is the task's group, if its end affects others: a step of a job waits for the group, or
	// (Ordered) tasks of the group wait for others of it. 0 means that neither applies.
	Group   task.GroupID
	Ordered bool
}

// Claimed is the work that a worker executes.
type Claimed struct {
	Task    task.Task
	Ref     Ref
	Decider string
	// Deadline is the time left until the group's deadline, at the moment of the claim; 0 means none.
	Deadline time.Duration
}

// Ended is the result of End.
type Ended struct {
	Answer   core.Answer
	State    task.State
	Decision *task.Decision
	// Opened are deliveries of tasks that waited for this one.
	Opened []Delivery
}

// Confirmed is the answer to a heartbeat.
type Confirmed struct {
	// Lost are the executions that the worker no longer owns.
	Lost []Lost
	// Grace is how long after its lease the worker keeps its executions, from this heartbeat on (the
	// setting continuation_grace).
	Grace time.Duration
}

// Lost is an execution that a worker no longer owns. Cause is ErrCanceled, or core.ErrLostOwner.
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
	ID        AttemptID     `json:"id"`
	TaskID    task.ID       `json:"task_id"`
	Number    int           `json:"number"` // 1, 2, ... of the task, over all its re-runs
	State     AttemptState  `json:"state"`
	Worker    string        `json:"worker"`
	Action    task.Spec     `json:"action"` // the handler's input
	Outcome   *task.Outcome `json:"outcome,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	StartedAt time.Time     `json:"started_at"`
	EndedAt   *time.Time    `json:"ended_at,omitempty"`
	// JobExecution is the execution of a task of type job; 0 means none.
	JobExecution core.JobExecutionID `json:"job_execution_id,omitempty"`
}

// DecisionRecord is the recorded reason of a decision.
type DecisionRecord struct {
	TaskID    task.ID       `json:"task_id"`
	Attempt   AttemptID     `json:"attempt_id,omitempty"`
	Trigger   string        `json:"trigger"` // the kind of the outcome, "lost_owner", "deadline" or "budget"
	Policy    string        `json:"policy"`  // the decider's name
	Decision  task.Decision `json:"decision"`
	Spent     task.Spent    `json:"spent"`
	DecidedAt time.Time     `json:"decided_at"`
}

// The bounds of Held and Search.
const (
	MostHeld     = 5_000
	MostSearched = 20_000
)

// Held is work that a process has.
type Held struct {
	// Worker is empty if the process is not a worker, such as a server; Process is HOST:PID then.
	Worker  string           `json:"-"`
	Process string           `json:"-"`
	Kind    ports.PlacedKind `json:"kind"`
	ID      int64            `json:"id" doc:"Number of the task, of the step execution of the part, or of the execution"`
	// Name is the type of a task, or the name of a part or of a job.
	Name      string              `json:"name" doc:"Type of the task, or name of the part or of the job"`
	Execution core.JobExecutionID `json:"execution,omitempty" doc:"The execution, also of a part"`
	State     string              `json:"state"`
	Since     time.Time           `json:"since,omitzero"`
	// LeaseLeft is negative after its end. An assigned task has no lease yet.
	LeaseLeft *float64 `json:"lease_left,omitempty" doc:"Seconds until its lease ends; negative after its end. An assigned task has none"`
}

// IsOrphaned reports whether its lease is over, and no other process has taken it yet.
func (h *Held) IsOrphaned() bool { return h.LeaseLeft != nil && *h.LeaseLeft < 0 }

// WaitingType is a type of tasks that wait to be executed.
type WaitingType struct {
	Name string
	// Tasks is at most MostWaiting.
	Tasks int
	// Since is when the oldest of the first MostWaiting of them was submitted.
	Since time.Time
}

// MostWaiting is the number of waiting tasks of a type that WaitingTypes counts.
const MostWaiting = 1_000

// InVain returns the types that no live worker executes.
func InVain(waiting []WaitingType, workers []Worker) []WaitingType {
	return slices.DeleteFunc(slices.Clone(waiting), func(t WaitingType) bool { return IsExecuted(workers, t.Name) })
}

// IsExecuted reports whether a live worker executes tasks of a type.
func IsExecuted(workers []Worker, taskType string) bool {
	return slices.ContainsFunc(workers, func(w Worker) bool { return w.State == WorkerActive && slices.Contains(w.Types, taskType) })
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
	Name     string   `json:"name"`
	Capacity int      `json:"capacity"`
	Types    []string `json:"types"`
	Deciders []string `json:"deciders"`
	Parts    bool     `json:"parts"` // takes parts of steps, and continues parked executions
	Version  string   `json:"version"`
	State    string   `json:"state"` // ACTIVE, DRAINING (stopping), GONE (it left), LOST (its lease ended)
	// Labels are compared with placements.
	Labels    map[string]string `json:"labels,omitempty"`
	Executing int               `json:"executing"`
	// Busy is the number of slots it uses, if requested (rule PL3).
	Busy        int       `json:"-"`
	StartedAt   time.Time `json:"started_at"`
	HeartbeatAt time.Time `json:"heartbeat_at"`
	// LeaseLeft is negative after the end of its lease.
	LeaseLeft float64 `json:"lease_left"`
}
