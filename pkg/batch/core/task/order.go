package task

import (
	"fmt"
	"strings"
)

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
