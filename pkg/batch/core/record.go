package core

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// The records of the repository. Every ID is a type of its own: mixing them does
// not compile (rule D1).
type (
	JobInstanceID   int64
	JobExecutionID  int64
	StepExecutionID int64
)

// JobInstance is a job with one set of identifying parameters.
type JobInstance struct {
	ID      JobInstanceID
	JobName string
	Key     string // Parameters.Key
	BaseKey string // Parameters.BaseKey; empty for a redrive
}

// JobExecution is one attempt of an instance.
type JobExecution struct {
	ID         JobExecutionID
	InstanceID JobInstanceID
	JobName    string
	Status     Status
	ExitCode   string
	// Error is the message of the failure or stop; empty otherwise.
	Error      string
	Params     Parameters
	Definition Definition
	Context    *ExecutionContext

	Owner         Owner
	Epoch         int64 // +1 at each take-over
	LeaseUntil    time.Time
	StopRequested bool

	// Settles is as in StepExecution: for an UNKNOWN job, true if it holds for all steps that made it
	// so.
	Settles bool

	// Attempt is 1 for the first execution of the instance.
	Attempt int
	// RedriveOf is the execution of the skipped items that this one redrives; 0 means none.
	RedriveOf JobExecutionID
	// Task is the task that ran it; 0 means none.
	Task int64
	// Parent is the execution that ran this one as a step (rule F2); 0 means none.
	Parent JobExecutionID
	// ParentCall is the first attempt at that step (Job.ParentCall).
	ParentCall StepExecutionID
	// Exclusive is the key shared with executions that must not run in parallel.
	Exclusive ExclusiveKey
	// Confinement restricts its paths (rule SE3); nil means no restriction.
	Confinement *Confinement
	// FormerTimes says that the program that launched it read a time without an offset as UTC, whatever the time zone of
	// the job (rule D5).
	FormerTimes bool
	// Gate says how the job's `expect` was answered; empty: it has none, or was not
	// asked.
	Gate string
	// Time is when the instance was first launched: the same in all its attempts.
	Time      time.Time
	CreatedAt time.Time
	StartedAt time.Time // zero before it started
	EndedAt   time.Time // zero while it runs
}

// Clone returns a copy that shares nothing with e.
func (e JobExecution) Clone() JobExecution {
	if e.Context != nil {
		e.Context = e.Context.Clone()
	}
	return e
}

// AnewSince returns the execution since which the steps of the instance count: the one that ran
// everything again (FromStartKey); 0 means that all count.
func (e *JobExecution) AnewSince() JobExecutionID {
	if e.Context == nil {
		return 0
	}
	value, _ := e.Context.Get(FromStartKey)
	id, _ := value.(int64) //nolint:errcheck // absent is zero
	return JobExecutionID(id)
}

// StepExecution is one attempt of a step in a job execution.
type StepExecution struct {
	ID StepExecutionID
	// First is the first of the attempts that this one continues, itself if it started over; 0 if not
	// recorded. Older records of the step, such as its partitions, belong to work that was completed
	// before.
	First          StepExecutionID
	JobExecutionID JobExecutionID
	JobName        string
	Name           string
	// Visit is the step's visit in the flow. For a part that walks a branch of a split it has only the
	// log of that branch.
	Visit    Visit
	Status   Status
	ExitCode string
	Error    string
	// Settles means that a checkpoint knows the outcome of an UNKNOWN step: the next attempt reads it
	// (rule C10).
	Settles  bool
	Counters Counters // of this attempt
	// Before are the summed counters of the attempts that this one continues: Total is the step's whole
	// work.
	Before Counters
	// InHand is the part of Counters that a failed or stopped attempt had consumed but not committed:
	// an attempt that continues this one consumes it again.
	InHand Counters
	// Gate is the answer of the step's `expect`; empty if there is none, or it was not asked.
	Gate     string
	Position item.Position // of the last committed chunk
	Context  *ExecutionContext
	Out      map[string]any // named results of a tasklet

	Owner Owner
	Epoch int64

	// Manager is the step execution that planned this partition; 0 if it is not a partition.
	Manager StepExecutionID
	// Branch is the part of the branch that contains this step, which a worker walks (rule P8); 0 means
	// none.
	Branch StepExecutionID
	// LeaseUntil is the end of a partition's own lease; zero if it has none, and belongs to the owner
	// of the job.
	LeaseUntil time.Time
	// AssignedFrom are the workers that lost the partition before this owner got it.
	AssignedFrom []Owner
	// Assigned is the number of times the partition was assigned to a worker.
	Assigned int
	// OpenParts is the number of partitions of this step that are not over.
	OpenParts int64

	StartedAt time.Time
	EndedAt   time.Time
}

// IsBranch reports whether it is the part that walks a branch of a split.
func (s StepExecution) IsBranch() bool { return s.Manager != 0 && s.Visit.Flow != "" }

// Clone returns a copy that shares nothing with s but its position.
func (s StepExecution) Clone() StepExecution {
	if s.Context != nil {
		s.Context = s.Context.Clone()
	}
	s.Out = maps.Clone(s.Out)
	return s
}

// Total returns the counters of this attempt and of those that it continued. Expressions and gates use
// it: a restart must not turn a hundred skips into none.
func (s StepExecution) Total() Counters { return s.Before.Add(s.Counters) }

// HasCommitted reports whether work of this attempt, or of those that it continues, is committed
// according to the record: the verdict of an item, a position, or a value in the context. The planned
// context of a partition, and the cause of a failure, do not count.
func (s StepExecution) HasCommitted() bool {
	c := s.Carried()
	c.Rollback = 0
	if c != (Counters{}) || len(s.Position) > 0 {
		return true
	}
	if s.Context == nil || s.Manager != 0 {
		return false
	}
	return slices.ContainsFunc(s.Context.Keys(), func(key string) bool {
		return key != ErrorClassKey && key != ErrorItemKey && key != NewDefinitionKey && key != WarningsKey
	})
}

// Carried returns the Before of an attempt that continues this one: the committed counters.
func (s StepExecution) Carried() Counters { return s.Total().Sub(s.InHand) }

// Counters count the work of a step; on commit they describe committed facts (C11).
type Counters struct {
	Read, Filter, Write              int64
	ReadSkip, ProcessSkip, WriteSkip int64
	Commit, Rollback                 int64
}

// Skips returns the skips of all phases.
func (c Counters) Skips() int64 { return c.ReadSkip + c.ProcessSkip + c.WriteSkip }

// Balanced reports whether every item that was read, or could not be read, is accounted for: written,
// filtered or skipped (rule C11). A failed read that was skipped is not among Read.
func (c Counters) Balanced() bool { return c.Read+c.ReadSkip == c.Write+c.Filter+c.Skips() }

// Rows returns the measure of a step's speed and progress: the number of items read, or written if it
// reads nothing.
func (c Counters) Rows() int64 {
	if c.Read == 0 {
		return c.Write
	}
	return c.Read
}

// Add returns the sum of both.
func (c Counters) Add(o Counters) Counters {
	return Counters{
		Read: c.Read + o.Read, Filter: c.Filter + o.Filter, Write: c.Write + o.Write,
		ReadSkip: c.ReadSkip + o.ReadSkip, ProcessSkip: c.ProcessSkip + o.ProcessSkip, WriteSkip: c.WriteSkip + o.WriteSkip,
		Commit: c.Commit + o.Commit, Rollback: c.Rollback + o.Rollback,
	}
}

// Sub returns the difference.
func (c Counters) Sub(o Counters) Counters {
	return Counters{
		Read: c.Read - o.Read, Filter: c.Filter - o.Filter, Write: c.Write - o.Write,
		ReadSkip: c.ReadSkip - o.ReadSkip, ProcessSkip: c.ProcessSkip - o.ProcessSkip, WriteSkip: c.WriteSkip - o.WriteSkip,
		Commit: c.Commit - o.Commit, Rollback: c.Rollback - o.Rollback,
	}
}

// Owner identifies the process that runs an execution, so that another process on the same host can
// tell whether it still lives (rule L2): a process ID alone is reused, with boot and start time it is
// unique.
type Owner struct {
	Host  string // host name
	Boot  string // identity of this boot of the host; empty if unknown
	PID   int
	Start string // start time of the process according to the system; empty if unknown
	Nonce string // distinguishes launchers inside one process
}

// String returns the stored form "host/boot/pid/start/nonce"; empty for no owner.
func (o Owner) String() string {
	if o == (Owner{}) {
		return ""
	}
	return strings.Join([]string{o.Host, o.Boot, itoa(o.PID), o.Start, o.Nonce}, "/")
}

// ParseOwner reads the text of String; an unreadable text becomes an owner on an unknown host, so that
// its lease alone decides.
func ParseOwner(text string) Owner {
	p := strings.Split(text, "/")
	if text == "" {
		return Owner{}
	}
	if len(p) != 5 {
		return Owner{Nonce: text}
	}
	return Owner{Host: p[0], Boot: p[1], PID: atoi(p[2]), Start: p[3], Nonce: p[4]}
}

// Context keys of a failed step execution, for data that the text of its error does not hold reliably.
const (
	// ErrorClassKey has the class of the error, a string.
	ErrorClassKey = "surfin.error_class"
	// ErrorItemKey has the origin of the item in error, such as "in.csv:17", a string.
	ErrorItemKey = "surfin.error_item"
)

// LostOwner is the error of an execution that lost its owner, and of its steps: their work since the
// last record is unknown.
const LostOwner = "lost owner"

// WaitsKey is the context key of a step that runs a job; it holds the execution with the key that the
// launch of that job waits for (rule L12).
const WaitsKey = "surfin.waits_for"

// OutcomeKey is the context key of a parked step of `finally` that holds the outcome of the flow.
const OutcomeKey = "surfin.outcome"

// TasksKey is the context key of a step that submits tasks; it holds the number of their group.
const TasksKey = "surfin.tasks"

// ChildKey is the context key of a step that runs a job; it holds the parameters of that job's first
// start.
const ChildKey = "surfin.child"

// ChildOf returns the execution of the job that the step ran; 0 if it runs none, or did not reach its
// end.
func ChildOf(s *StepExecution) JobExecutionID {
	if s.Context == nil {
		return 0
	}
	if _, is := s.Context.Get(ChildKey); !is {
		return 0
	}
	switch id := s.Out["execution"].(type) {
	case int64:
		return JobExecutionID(id)
	case float64:
		return JobExecutionID(id)
	}
	return 0
}

// NewDefinitionKey is the context key of a step execution that took the new definition of its step,
// since nothing was committed by the old one (rule F4a): true.
const NewDefinitionKey = "surfin.new_definition"

// WarningsKey is the context key of a step execution's warnings, one per line.
const WarningsKey = "surfin.warnings"

// maxWarnings bounds the text of all warnings of a step, in bytes.
const maxWarnings = 4 << 10

// Warn adds a warning to the context of a step, for the operator of a step that completes. A duplicate,
// and one that does not fit, is left out.
func Warn(c *ExecutionContext, text string) error {
	known, _ := c.Get(WarningsKey)
	before, _ := known.(string)
	text = strings.ReplaceAll(text, "\n", " ")
	if slices.Contains(strings.Split(before, "\n"), text) || len(before)+len(text) > maxWarnings {
		return nil
	}
	if before != "" {
		text = before + "\n" + text
	}
	return c.Put(WarningsKey, text)
}

// Warnings returns the warnings of Warn in the context of the step.
func (s StepExecution) Warnings() []string {
	if s.Context == nil {
		return nil
	}
	known, _ := s.Context.Get(WarningsKey)
	text, _ := known.(string)
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// FromStartKey is the job context key under which an instance remembers the ID of the execution that
// ran everything again, or everything except its journal's work (LaunchFrom): older executions are
// history only.
const FromStartKey = "surfin.from_start"
