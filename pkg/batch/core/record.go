package core

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Every ID has its own type: mixing does not compile (rule D1).
type (
	JobInstanceID   int64
	JobExecutionID  int64
	StepExecutionID int64
)

// JobExecution is one attempt of an instance.
type JobExecution struct {
	ID         JobExecutionID
	InstanceID JobInstanceID
	JobName    string
	Status     Status
	ExitCode   string
	Error      string
	Params     Parameters
	Definition Definition
	Context    *ExecutionContext

	Owner         Owner
	Epoch         int64 // +1 at each take-over
	LeaseUntil    time.Time
	StopRequested bool

	// Settles: for UNKNOWN, true if for all steps that made it so.
	Settles bool

	Attempt int
	// RedriveOf is the redriven execution; 0 means none.
	RedriveOf JobExecutionID
	// Task ran it; 0 means none.
	Task int64
	// Parent ran this as a step (rule F2); 0 means none.
	Parent     JobExecutionID
	ParentCall StepExecutionID
	Exclusive  ExclusiveKey
	// Confinement restricts paths (rule SE3); nil means none.
	Confinement *Confinement
	// FormerTimes: the launching program read local times as UTC (rule D5).
	FormerTimes bool
	// Gate answers the job's `expect`; or empty.
	Gate string
	// Unreadable names stored data that are left out, since they cannot be parsed: only in views, never where work is
	// decided. nil means none.
	Unreadable error `json:"-"`
	Time       time.Time
	CreatedAt  time.Time
	StartedAt  time.Time // or zero
	EndedAt    time.Time // or zero
}

// Clone shares nothing with e.
func (e JobExecution) Clone() JobExecution {
	if e.Context != nil {
		e.Context = e.Context.Clone()
	}
	return e
}

// AnewSince is the execution since which steps count (FromStartKey); 0 means all.
func (e *JobExecution) AnewSince() JobExecutionID {
	if e.Context == nil {
		return 0
	}
	value, _ := e.Context.Get(FromStartKey)
	id, _ := value.(int64) //nolint:errcheck // absent is zero
	return JobExecutionID(id)
}

// StepExecution is one attempt of a step.
type StepExecution struct {
	ID StepExecutionID
	// First is the first continued attempt, or itself; 0 if not recorded. Older records belong to completed
	// work.
	First          StepExecutionID
	JobExecutionID JobExecutionID
	JobName        string
	Name           string
	// Visit in the flow; a branch's part has only its log.
	Visit    Visit
	Status   Status
	ExitCode string
	Error    string
	// Settles: a checkpoint knows the UNKNOWN outcome; the next attempt reads it (rule C10).
	Settles  bool
	Counters Counters // of this attempt
	// Before sums the continued attempts; see Total.
	Before Counters
	// InHand is consumed but not committed by a failed or stopped attempt: consumed again by the next.
	InHand Counters
	// Gate answers `expect`; or empty.
	Gate     string
	Position item.Position // of the last committed chunk
	Context  *ExecutionContext
	Out      map[string]any

	Owner Owner
	Epoch int64

	// Manager planned this partition; else 0.
	Manager StepExecutionID
	// Branch is the part, walked by a worker, with this step (rule P8); or 0.
	Branch StepExecutionID
	// LeaseUntil is a partition's own lease's; zero if the job's owner has it.
	LeaseUntil time.Time
	// AssignedFrom are workers that lost it.
	AssignedFrom []Owner
	Assigned     int
	// OpenParts are its partitions not over.
	OpenParts int64
	// Unreadable is as in JobExecution.
	Unreadable error `json:"-"`

	StartedAt time.Time
	EndedAt   time.Time
}

// IsBranch reports whether it walks a split's branch.
func (s StepExecution) IsBranch() bool { return s.Manager != 0 && s.Visit.Flow != "" }

// Clone shares only the position.
func (s StepExecution) Clone() StepExecution {
	if s.Context != nil {
		s.Context = s.Context.Clone()
	}
	s.Out = maps.Clone(s.Out)
	return s
}

// Total includes continued attempts, for expressions and gates: a restart must not turn a hundred skips into
// none.
func (s StepExecution) Total() Counters { return s.Before.Add(s.Counters) }

// HasCommitted reports whether by the record this or a continued attempt committed a verdict, a position or a
// context value, without a planned context or a failure's cause.
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
		return key != ErrorClassKey && key != ErrorItemKey && key != NewDefinitionKey && key != warningsKey
	})
}

// Carried is the next attempt's Before: committed counters.
func (s StepExecution) Carried() Counters { return s.Total().Sub(s.InHand) }

// Counters describe committed facts (C11).
type Counters struct {
	Read, Filter, Write              int64
	ReadSkip, ProcessSkip, WriteSkip int64
	Commit, Rollback                 int64
}

// Skips of all phases.
func (c Counters) Skips() int64 { return c.ReadSkip + c.ProcessSkip + c.WriteSkip }

// Balanced reports whether every item is written, filtered or skipped (rule C11). A skipped failed read is not
// in Read.
func (c Counters) Balanced() bool { return c.Read+c.ReadSkip == c.Write+c.Filter+c.Skips() }

// Rows is items read, or written if none.
func (c Counters) Rows() int64 {
	if c.Read == 0 {
		return c.Write
	}
	return c.Read
}

// Add is the sum.
func (c Counters) Add(o Counters) Counters {
	return Counters{
		Read: c.Read + o.Read, Filter: c.Filter + o.Filter, Write: c.Write + o.Write,
		ReadSkip: c.ReadSkip + o.ReadSkip, ProcessSkip: c.ProcessSkip + o.ProcessSkip, WriteSkip: c.WriteSkip + o.WriteSkip,
		Commit: c.Commit + o.Commit, Rollback: c.Rollback + o.Rollback,
	}
}

// Sub is the difference.
func (c Counters) Sub(o Counters) Counters {
	return Counters{
		Read: c.Read - o.Read, Filter: c.Filter - o.Filter, Write: c.Write - o.Write,
		ReadSkip: c.ReadSkip - o.ReadSkip, ProcessSkip: c.ProcessSkip - o.ProcessSkip, WriteSkip: c.WriteSkip - o.WriteSkip,
		Commit: c.Commit - o.Commit, Rollback: c.Rollback - o.Rollback,
	}
}

// Owner is a process: process IDs are reused, with boot and start time unique, so another process on the host
// can tell whether it lives (rule L2).
type Owner struct {
	Host  string
	Boot  string // or empty
	PID   int
	Start string // by the system, or empty
	Nonce string // of launchers in one process
}

// String is "host/boot/pid/start/nonce"; empty for none.
func (o Owner) String() string {
	if o == (Owner{}) {
		return ""
	}
	return strings.Join([]string{o.Host, o.Boot, itoa(o.PID), o.Start, o.Nonce}, "/")
}

// Context keys of a failure that its text does not hold reliably.
const (
	// ErrorClassKey is a string.
	ErrorClassKey = "surfin.error_class"
	// ErrorItemKey is an origin such as "in.csv:17".
	ErrorItemKey = "surfin.error_item"
)

// NewDefinitionKey means that the step took its new definition, as nothing was committed (rule F4a): true.
const NewDefinitionKey = "surfin.new_definition"

const warningsKey = "surfin.warnings"

// maxWarnings is in bytes.
const maxWarnings = 4 << 10

// Warn adds a warning for the operator; a duplicate, or one too long, is left out.
func Warn(c *ExecutionContext, text string) error {
	known, _ := c.Get(warningsKey)
	before, _ := known.(string)
	text = strings.ReplaceAll(text, "\n", " ")
	if slices.Contains(strings.Split(before, "\n"), text) || len(before)+len(text) > maxWarnings {
		return nil
	}
	if before != "" {
		text = before + "\n" + text
	}
	return c.Put(warningsKey, text)
}

// Warnings are Warn's.
func (s StepExecution) Warnings() []string {
	if s.Context == nil {
		return nil
	}
	known, _ := s.Context.Get(warningsKey)
	text, _ := known.(string)
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// FromStartKey is the execution that ran everything again, or all except its journal's work (LaunchFrom): older ones
// are history.
const FromStartKey = "surfin.from_start"

func itoa(i int) string { return strconv.Itoa(i) }
