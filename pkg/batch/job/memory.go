package job

import (
	"maps"
	"strings"
	"sync"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// memory is what the branches of an execution know together. It is safe for
// concurrent use.
type memory struct {
	mu sync.Mutex
	// history is the newest execution of each step in the instance, and how often it
	// was attempted.
	history map[string]core.StepHistory
	// steps are those that ran, or were passed, in this execution.
	steps map[string]core.StepExecution
	// visited are the elements that were come to in this execution.
	visited map[string]bool
	// left are the elements from which this execution went on though an earlier one
	// had stopped there.
	left map[string]bool
	// replayed are the steps that ran in this execution on the way to a jump, by the id
	// of their records: behind the jump they are passed.
	replayed map[string]core.StepExecutionID
}

func newMemory(history map[string]core.StepHistory) *memory {
	if history == nil {
		history = map[string]core.StepHistory{}
	}
	return &memory{
		history: history, steps: map[string]core.StepExecution{}, visited: map[string]bool{}, left: map[string]bool{},
		replayed: map[string]core.StepExecutionID{},
	}
}

// visit notes that the element is come to; again says that it was before.
func (m *memory) visit(element string) (again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	again = m.visited[element]
	m.visited[element] = true
	return again
}

func (m *memory) hasVisited(element string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.visited[element]
}

// forget makes the elements, and those inside of them, ones that were not come to
// yet.
func (m *memory) forget(elements []core.Element) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetLocked(elements)
}

func (m *memory) forgetLocked(elements []core.Element) {
	for _, e := range elements {
		delete(m.visited, e.ElementName())
		if name, ok := recordOf(e); ok {
			m.replayed[name] = m.steps[name].ID
		}
		for _, inner := range core.Flows(e) {
			m.forgetLocked(inner.Elements)
		}
	}
}

// isReplayed reports whether the step's record was there before a jump.
func (m *memory) isReplayed(s core.StepExecution) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return s.ID != 0 && m.replayed[s.Name] == s.ID
}

// leave notes that the execution goes on from where an earlier one stopped; it
// answers false if it did before.
func (m *memory) leave(element string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := m.left[element]
	m.left[element] = true
	return !left
}

func (m *memory) hasLeft(element string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left[element]
}

// of is the history of a step.
func (m *memory) of(step string) (core.StepHistory, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.history[step]
	return h, ok
}

// hasUnfinished reports whether a step of the instance did not complete, in this
// execution or in an earlier one.
func (m *memory) hasUnfinished() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.history {
		if h.Last.Status != core.StatusCompleted || h.Attempts > 1 {
			return true
		}
	}
	return false
}

// pass notes a step that an earlier execution completed.
func (m *memory) pass(s core.StepExecution) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps[s.Name] = s
}

// ran notes a step that ran in this execution.
func (m *memory) ran(s core.StepExecution) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.history[s.Name]
	if h.Last.ID != s.ID && s.ExitCode != core.ExitNoop {
		h.Attempts++
	}
	h.Last = s
	m.history[s.Name], m.steps[s.Name] = h, s
}

// ended notes how a step ended that is known to have run.
func (m *memory) ended(s core.StepExecution) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.history[s.Name]
	h.Last = s
	m.history[s.Name], m.steps[s.Name] = h, s
}

// seen are the steps of this execution, to be read by others.
func (m *memory) seen() map[string]core.StepExecution {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.steps)
}

// parts are the newest executions of a step's partitions, by partition.
func (m *memory) parts(step string) map[string]core.StepExecution {
	m.mu.Lock()
	defer m.mu.Unlock()
	prefix := core.PartName(step, "")
	parts := map[string]core.StepExecution{}
	for name, h := range m.history {
		if part, is := strings.CutPrefix(name, prefix); is {
			parts[part] = h.Last
		}
	}
	return parts
}
