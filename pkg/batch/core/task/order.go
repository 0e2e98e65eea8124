package task

import (
	"fmt"
	"slices"
	"strings"
)

// maxAfter bounds a group's After keys.
const maxAfter = 100_000

// Awaited is a task that another waits for.
type Awaited struct {
	ID    ID     `json:"id"`
	Key   string `json:"key"`
	State State  `json:"state"`
}

// String names the task with its state.
func (a Awaited) String() string {
	return fmt.Sprintf("task %d (%q), which is %s", a.ID, a.Key, a.State)
}

// WaitsFor names the awaited tasks, or "".
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

// OrderError is in a task's key or after.
type OrderError struct {
	Task int
	Text string
}

// Error names the task.
func (e *OrderError) Error() string { return fmt.Sprintf("tasks[%d]: %s", e.Task, e.Text) }

func wrongOrder(task int, format string, args ...any) error {
	return &OrderError{Task: task, Text: fmt.Sprintf(format, args...)}
}

const maxKnown = 10

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
