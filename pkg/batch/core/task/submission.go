package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Order returns for each task the positions it waits for, ascending; nil if none waits. The error joins
// *OrderErrors, or reports a cycle.
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

// A key precedes an idempotency key.
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

// A cycle, with the first at both ends.
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

// Submission is a group of tasks, not empty.
type Submission struct {
	Title string `json:"title,omitempty"`
	Tasks []Spec `json:"tasks"`
	// Type is its tasks' default.
	Type           string `json:"type,omitempty"`
	Budget         Budget `json:"budget"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// Decider is registered; "" means the default.
	Decider string `json:"decider,omitempty"`
	// Step waits for the group; 0 means none. The idempotency key does not cover it: a restart is another step
	// execution.
	Step core.StepExecutionID `json:"-"`
}

// Check reports errors in the group's texts; tasks and budget have their own.
func (s Submission) Check() error {
	var errs []error
	for _, text := range []boundedText{
		{"title", s.Title, maxTitle}, {"type", s.Type, maxType}, {"idempotency_key", s.IdempotencyKey, maxGroupKey}, {"decider", s.Decider, maxType},
	} {
		errs = append(errs, text.check())
	}
	return errors.Join(errs...)
}

// ErrOtherSubmission means that the key was used for another one.
var ErrOtherSubmission = errors.New("the idempotency key was used for another submission")

// Submitted is the result of a submission.
type Submitted struct {
	Group     GroupID `json:"group"`
	Tasks     []ID    `json:"tasks"` // in order
	Duplicate bool    `json:"duplicate,omitempty"`
}

// Filter selects tasks, newest first; zero selects all.
type Filter struct {
	Group  GroupID
	State  State
	Type   string
	Before ID
	// JobDefinition selects a schedule's runs.
	JobDefinition int64
	// Unfinished: not over.
	Unfinished bool
	Limit      int // 0 means 100
}

// Group was submitted together.
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

// GroupOverError refuses to cancel a finished group.
type GroupOverError struct {
	ID    GroupID
	State GroupState
}

// Error states the state.
func (e *GroupOverError) Error() string {
	return "the group is " + string(e.State) + ": it has nothing left to cancel"
}
