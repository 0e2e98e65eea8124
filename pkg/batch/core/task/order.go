package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxAfter bounds the keys of all After of a group.
const maxAfter = 100_000

// Awaited is a task that another task of its group waits for.
type Awaited struct {
	ID    ID     `json:"id"`
	Key   string `json:"key"` // as the other task names it
	State State  `json:"state"`
}

// String names the task with its state.
func (a Awaited) String() string {
	return fmt.Sprintf("task %d (%q), which is %s", a.ID, a.Key, a.State)
}

// WaitsFor names the tasks that the task waits for, or returns "".
func (t Task) WaitsFor() string {
	if len(t.OpenAfter) == 0 {
		return ""
	}
	names := make([]string, len(t.OpenAfter))
	for i, a := range t.OpenAfter {
		names[i] = a.String()
	}
	text := strings.Join(names, "; ")
	if more := t.OpenAfterCount - len(names); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// OrderError is an error in the key or the after of a task.
type OrderError struct {
	Task int // its position in the submission
	Text string
}

// Error names the task.
func (e *OrderError) Error() string { return fmt.Sprintf("tasks[%d]: %s", e.Task, e.Text) }

func wrongOrder(task int, format string, args ...any) error {
	return &OrderError{Task: task, Text: fmt.Sprintf(format, args...)}
}

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

// maxKnown is the number of keys that a message lists.
const maxKnown = 10

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

// cycleOf returns tasks that each wait for the next, the last for the first, or nil.
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
