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
	BaseKey string // Parameters.BaseKey; empty: a redrive
}

// JobExecution is one attempt of an instance.
type JobExecution struct {
	ID         JobExecutionID
	InstanceID JobInstanceID
	JobName    string
	Status     Status
	ExitCode   string
	// Error is the message of what made it fail or stop; empty otherwise.
	Error      string
	Params     Parameters
	Definition Definition
	Context    *ExecutionContext

	Owner         Owner
	Epoch         int64 // +1 at each take-over
	LeaseUntil    time.Time
	StopRequested bool

	// Settles is as in StepExecution: of a job that is UNKNOWN, that of all steps that made it so.
	Settles bool

	// Attempt is 1 for the first execution of the instance.
	Attempt int
	// RedriveOf is the execution whose skipped items this one redrives; 0: none.
	RedriveOf JobExecutionID
	// Task is the task that ran it; 0: none.
	Task int64
	// Parent is the execution that ran this one as a step (rule F2); 0: none.
	Parent JobExecutionID
	// ParentCall is the first attempt at that step (Job.ParentCall).
	ParentCall StepExecutionID
	// Exclusive is the key that it shares with executions that do not run beside it.
	Exclusive ExclusiveKey
	// Confinement restricts its paths (rule SE3); nil: nothing does.
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

// AnewSince is the execution since which the steps of the instance count: that which
// ran everything anew (FromStartKey); 0: all of them do.
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
	// First is the first of the attempts that this one continues, itself if it began
	// anew; 0: it is not recorded. What is older than First and belongs to the step,
	// such as its partitions, is of work that was completed before.
	First          StepExecutionID
	JobExecutionID JobExecutionID
	JobName        string
	Name           string
	// Visit is the visit of the flow that the step is. Of a part that walks a branch of a
	// split it has the log of that branch alone.
	Visit    Visit
	Status   Status
	ExitCode string
	Error    string
	// Settles says of a step that is UNKNOWN that a checkpoint tells its outcome: the next
	// attempt reads it (rule C10).
	Settles  bool
	Counters Counters // of this attempt
	// Before are the counters of the attempts that this one continues, summed:
	// Total is what the step did in all.
	Before Counters
	// InHand is the part of Counters that a failed or stopped attempt had consumed
	// and not committed: an attempt that continues this one consumes it again.
	InHand Counters
	// Gate says how the step's `expect` was answered; empty: it has none, or was not
	// asked.
	Gate     string
	Position item.Position // of the last committed chunk
	Context  *ExecutionContext
	Out      map[string]any // named results of a tasklet

	Owner Owner
	Epoch int64

	// Manager is the step execution that planned this partition; 0: it is none.
	Manager StepExecutionID
	// Branch is the part whose worker walks the branch that this step is in (rule P8); 0: it is
	// in none.
	Branch StepExecutionID
	// LeaseUntil is the end of a partition's own lease; zero: it has none, and belongs to
	// the owner of the job.
	LeaseUntil time.Time
	// AssignedFrom are the workers that lost the partition before this owner got it.
	AssignedFrom []Owner
	// Assigned is how often the partition was assigned to a worker.
	Assigned int
	// OpenParts is how many partitions of this step are not over.
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

// Total is what the step did in this attempt and in those that it went on from.
// Expressions and gates speak of it: a restart must not make a hundred skips none.
func (s StepExecution) Total() Counters { return s.Before.Add(s.Counters) }

// HasCommitted reports whether work of this attempt, or of those that it continues, is
// committed as far as the record says: the verdict of an item, a position, or a value in the
// context. What a partition was planned with, and the cause of a failure, do not count.
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

// Carried is what an attempt that continues this one has Before it: what is
// committed.
func (s StepExecution) Carried() Counters { return s.Total().Sub(s.InHand) }

// Counters count what a step did; on commit they describe committed facts (C11).
type Counters struct {
	Read, Filter, Write              int64
	ReadSkip, ProcessSkip, WriteSkip int64
	Commit, Rollback                 int64
}

// Skips returns the skips of all phases.
func (c Counters) Skips() int64 { return c.ReadSkip + c.ProcessSkip + c.WriteSkip }

// Balanced reports whether every item that was read, or could not be read, is accounted
// for: written, filtered or skipped (rule C11). A failed read that was skipped is not
// among Read.
func (c Counters) Balanced() bool { return c.Read+c.ReadSkip == c.Write+c.Filter+c.Skips() }

// Rows is what the speed and the progress of a step are measured by: what it reads, or
// writes where it reads nothing.
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

// Owner names the process that runs an execution, so that another process on
// the same host can tell whether it still lives (rule L2): a process id alone is
// used again, with boot and start time it is not.
type Owner struct {
	Host  string // host name
	Boot  string // identity of this boot of the host; empty if unknown
	PID   int
	Start string // start time of the process as the system tells it; empty if unknown
	Nonce string // distinguishes launchers inside one process
}

// String returns the stored form "host/boot/pid/start/nonce"; of no owner it is empty.
func (o Owner) String() string {
	if o == (Owner{}) {
		return ""
	}
	return strings.Join([]string{o.Host, o.Boot, itoa(o.PID), o.Start, o.Nonce}, "/")
}

// ParseOwner reads what String wrote; an unreadable text becomes an owner on an
// unknown host, whose lease alone decides.
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

// Keys of the context of a step execution that failed: what the text of its error
// does not say in a way that can be relied on.
const (
	// ErrorClassKey has the class of the error, a string.
	ErrorClassKey = "surfin.error_class"
	// ErrorItemKey has where the item came from that it is about, such as
	// "in.csv:17", a string.
	ErrorItemKey = "surfin.error_item"
)

// LostOwner is the error of an execution and of its steps whose owner was lost: what they did
// since their last record is not known.
const LostOwner = "lost owner"

// WaitsKey is the key of the context of a step that runs a job under which the execution is for
// whose key the launch of that job waits (rule L12).
const WaitsKey = "surfin.waits_for"

// OutcomeKey is the key of the context of a parked step of `finally` under which the outcome of the flow is.
const OutcomeKey = "surfin.outcome"

// TasksKey is the key of the context of a step that submits tasks under which the number of
// their group is.
const TasksKey = "surfin.tasks"

// ChildKey is the key of the context of a step that runs a job under which the parameters of
// that job are stored when it is first started.
const ChildKey = "surfin.child"

// ChildOf returns the execution of the job that the step ran; 0: it runs none, or it did not
// come to its end.
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

// NewDefinitionKey is the key of the context of a step execution that took the new
// definition of its step, since nothing was committed by the old one (rule F4a): true.
const NewDefinitionKey = "surfin.new_definition"

// WarningsKey is the key of the context of a step execution that has its warnings, one in a line.
const WarningsKey = "surfin.warnings"

// maxWarnings bounds the text of all warnings of a step, in bytes.
const maxWarnings = 4 << 10

// Warn adds a warning to the context of a step: what an operator should know of a step that completes.
// One that is there already, and one that finds no room, is left out.
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

// Warnings are what Warn has added to the context of the step.
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
