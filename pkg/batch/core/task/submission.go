package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Order returns for each task of the submission the positions of the tasks that it waits for, each once
// and ascending; nil if no task waits for another. The error joins an *OrderError for every duplicate
// or unknown key, or else reports a cycle.
func (s Submission) Order() ([][]int, error) {
	at, wrong := s.keys()
	order, n := make([][]int, len(s.Tasks)), 0
	for i, spec := range s.Tasks {
		for _, key := range spec.After {
			j, known := at[key]
			switch {
			case !known:
				wrong = append(wrong, wrongOrder(i, "after: no task of the group has the key %q: a task is named by its key, or else by its idempotency_key%s", key, s.knownKeys()))
			case j == i:
				wrong = append(wrong, wrongOrder(i, "after: %q is the task itself", key))
			default:
				order[i] = append(order[i], j)
			}
		}
		slices.Sort(order[i])
		order[i] = slices.Compact(order[i])
		n += len(order[i])
	}
	if n > maxAfter {
		wrong = append(wrong, fmt.Errorf("after: the tasks have %d keys in total, more than the allowed %d", n, maxAfter))
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	if n == 0 {
		return nil, nil
	}
	if cycle := cycleOf(order); cycle != nil {
		return nil, wrongOrder(cycle[0], "after: the tasks wait for each other in a cycle: %s", s.names(cycle))
	}
	return order, nil
}

// keys maps the names of tasks to their positions. A key takes precedence over an idempotency key.
func (s Submission) keys() (at map[string]int, wrong []error) {
	at = map[string]int{}
	for i, spec := range s.Tasks {
		if spec.Key == "" {
			continue
		}
		if first, twice := at[spec.Key]; twice {
			wrong = append(wrong, wrongOrder(i, "key: %q is already the key of tasks[%d]: a key names one task of the group", spec.Key, first))
			continue
		}
		at[spec.Key] = i
	}
	for i, spec := range s.Tasks {
		if _, known := at[spec.IdempotencyKey]; !known && spec.IdempotencyKey != "" {
			at[spec.IdempotencyKey] = i
		}
	}
	return at, wrong
}

// knownKeys lists existing keys, for a message.
func (s Submission) knownKeys() string {
	var known []string
	for _, spec := range s.Tasks {
		switch {
		case len(known) == maxKnown:
			return fmt.Sprintf(" (known: %s, ...)", strings.Join(known, ", "))
		case spec.Key != "":
			known = append(known, fmt.Sprintf("%q", spec.Key))
		case spec.IdempotencyKey != "":
			known = append(known, fmt.Sprintf("%q", spec.IdempotencyKey))
		}
	}
	if len(known) == 0 {
		return " (none has one)"
	}
	return fmt.Sprintf(" (known: %s)", strings.Join(known, ", "))
}

// names names the tasks of a cycle, the first one at both ends.
func (s Submission) names(cycle []int) string {
	names := make([]string, 0, len(cycle)+1)
	for _, i := range append(slices.Clone(cycle), cycle[0]) {
		name := s.Tasks[i].Key
		if name == "" {
			name = s.Tasks[i].IdempotencyKey
		}
		names = append(names, fmt.Sprintf("%q", name))
	}
	if len(names) > maxKnown {
		names = append(append(names[:maxKnown-1:maxKnown-1], "..."), names[len(names)-1])
	}
	return strings.Join(names, " after ")
}

// Submission is a group of tasks. It may not be empty.
type Submission struct {
	Title string `json:"title,omitempty"`
	Tasks []Spec `json:"tasks"`
	// Type is the default type of its tasks.
	Type           string `json:"type,omitempty"`
	Budget         Budget `json:"budget"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// Decider names a registered decider; "" means the default.
	Decider string `json:"decider,omitempty"`
	// Step is the step of a job that waits for the group; 0 means none. The idempotency key does not
	// cover it: a restart of the step is another step execution.
	Step core.StepExecutionID `json:"-"`
}

// Check reports all errors in the texts of the group. Its tasks and its budget have checks of their
// own.
func (s Submission) Check() error {
	var errs []error
	for _, text := range []boundedText{
		{"title", s.Title, maxTitle}, {"type", s.Type, maxType}, {"idempotency_key", s.IdempotencyKey, maxGroupKey}, {"decider", s.Decider, maxType},
	} {
		errs = append(errs, text.check())
	}
	return errors.Join(errs...)
}

// ErrOtherSubmission means that an idempotency key was used for another submission.
var ErrOtherSubmission = errors.New("the idempotency key was used for another submission")

// Submitted is the result of a submission.
type Submitted struct {
	Group     GroupID `json:"group"`
	Tasks     []ID    `json:"tasks"` // in the order of the submission
	Duplicate bool    `json:"duplicate,omitempty"`
}

// Filter selects tasks, newest first. Zero fields select all.
type Filter struct {
	Group  GroupID
	State  State
	Type   string
	Before ID
	// JobDefinition selects the runs of a registered job that its schedule requested.
	JobDefinition int64
	// Unfinished selects tasks that are not over.
	Unfinished bool
	Limit      int // 0 means 100
}

// Group is a set of tasks submitted together.
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

// GroupOverError refuses to cancel a group without unfinished tasks.
type GroupOverError struct {
	ID    GroupID
	State GroupState
}

// Error states the group's state.
func (e *GroupOverError) Error() string {
	return "the group is " + string(e.State) + ": it has nothing left to cancel"
}
