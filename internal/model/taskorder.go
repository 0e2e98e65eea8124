package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// The maximum numbers of keys in after of one group, and of keys that an error names.
const (
	maxAfter = 100_000
	maxKnown = 10
)

// TaskOrder returns for each task the positions it waits for, ascending; nil if none waits. The error joins
// *TaskOrderErrors, or reports a cycle.
func TaskOrder(s task.Submission) ([][]int, error) {
	at, wrong := keysOf(s)
	order, n := make([][]int, len(s.Tasks)), 0
	for i, spec := range s.Tasks {
		for _, key := range spec.After {
			j, known := at[key]
			switch {
			case !known:
				wrong = append(wrong, wrongOrder(i, "after: no task of the group has the key %q: a task is named by its key, or else by its idempotency_key%s", key, knownKeys(s)))
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
		return nil, wrongOrder(cycle[0], "after: the tasks wait for each other in a cycle: %s", namesOf(s, cycle))
	}
	return order, nil
}

// A key precedes an idempotency key.
func keysOf(s task.Submission) (at map[string]int, wrong []error) {
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

func knownKeys(s task.Submission) string {
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
func namesOf(s task.Submission, cycle []int) string {
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

// TaskOrderError is in a task's key or after.
type TaskOrderError struct {
	Task int
	Text string
}

// Error names the task.
func (e *TaskOrderError) Error() string { return fmt.Sprintf("tasks[%d]: %s", e.Task, e.Text) }

func wrongOrder(i int, format string, args ...any) error {
	return &TaskOrderError{Task: i, Text: fmt.Sprintf(format, args...)}
}

// Each waits for the next; nil if none.
func cycleOf(order [][]int) []int {
	waits, followers, free := make([]int, len(order)), make([][]int, len(order)), []int{}
	for i, needs := range order {
		waits[i] = len(needs)
		for _, j := range needs {
			followers[j] = append(followers[j], i)
		}
		if len(needs) == 0 {
			free = append(free, i)
		}
	}
	for ; len(free) > 0; free = free[1:] {
		for _, i := range followers[free[0]] {
			if waits[i]--; waits[i] == 0 {
				free = append(free, i)
			}
		}
	}
	at := slices.IndexFunc(waits, func(n int) bool { return n > 0 })
	if at < 0 {
		return nil
	}
	var path []int
	seen := map[int]int{}
	for {
		if begin, there := seen[at]; there {
			return path[begin:]
		}
		seen[at], path = len(path), append(path, at)
		at = order[at][slices.IndexFunc(order[at], func(j int) bool { return waits[j] > 0 })]
	}
}
