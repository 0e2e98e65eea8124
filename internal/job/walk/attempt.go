package walk

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Attempt is the state that the walks of one attempt share.
type Attempt struct {
	// ID, of a plan, does not exist.
	ID        core.JobExecutionID
	Journal   *journal.Journal
	Progress  *Progress
	Execution func() *core.JobExecution
	// Outcome is for the steps and listeners after the flow; nil before.
	Outcome *core.Outcome
	// Resuming: the walk has not reached the step that waited.
	Resuming bool
	// Waited are the parked steps, until the walk reaches them.
	Waited []core.StepExecution
	// OnBranch: a worker walks a branch of a split.
	OnBranch bool
}

// HasWaited reports whether this attempt was parked with the step.
func (a *Attempt) HasWaited(id core.StepExecutionID) bool {
	return (a.Resuming || a.OnBranch) && slices.ContainsFunc(a.Waited, func(s core.StepExecution) bool { return s.ID == id })
}

// ReachWaited notes that the walk has reached it.
func (a *Attempt) ReachWaited(id core.StepExecutionID) {
	a.Resuming = false
	a.Waited = slices.DeleteFunc(a.Waited, func(s core.StepExecution) bool { return s.ID == id })
}

// Progress is shared by an execution's branches. It is safe for concurrent use.
type Progress struct {
	mu      sync.Mutex
	history map[string]ports.StepHistory
	// Steps that ran, or were passed.
	steps map[string]core.StepExecution
	// unwritten wait for the next write.
	unwritten []ports.FlowVisit
}

// NewProgress returns that of an attempt that has run nothing.
func NewProgress(history map[string]ports.StepHistory) *Progress {
	if history == nil {
		history = map[string]ports.StepHistory{}
	}
	return &Progress{history: history, steps: map[string]core.StepExecution{}}
}

// Clone copies it for a plan.
func (p *Progress) Clone() *Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &Progress{history: maps.Clone(p.history), steps: maps.Clone(p.steps)}
}

// Note keeps a row until the next write (rule F5).
func (p *Progress) Note(rows ...ports.FlowVisit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unwritten = append(p.unwritten, rows...)
}

// Unwritten returns the waiting rows. Another branch may write them too.
func (p *Progress) Unwritten() []ports.FlowVisit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]ports.FlowVisit(nil), p.unwritten...)
}

// RecordWritten removes written rows.
func (p *Progress) RecordWritten(rows []ports.FlowVisit) {
	if len(rows) == 0 {
		return
	}
	written := make(map[core.Visit]bool, len(rows))
	for _, row := range rows {
		written[row.Visit] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var left []ports.FlowVisit
	for _, row := range p.unwritten {
		if !written[row.Visit] {
			left = append(left, row)
		}
	}
	p.unwritten = left
}

// Recall restores the steps from the history: this execution's as run, earlier
// completed ones as passed.
func (p *Progress) Recall(id core.JobExecutionID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, h := range p.history {
		if h.Last.Manager == 0 && h.Last.Status.IsOver() && (h.Last.JobExecutionID == id || h.Last.Status == core.StatusCompleted) {
			p.steps[name] = h.Last
		}
	}
}

// LastBefore returns the same log's step with the greatest ordinal before the
// visit, or nil.
func (p *Progress) LastBefore(v core.Visit) (last *core.StepExecution) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.steps {
		if s.Visit.Flow == v.Flow && s.Visit.Ordinal < v.Ordinal && (last == nil || s.Visit.Ordinal > last.Visit.Ordinal) {
			last = &s
		}
	}
	return last
}

// HistoryOf returns a step's newest execution and number of attempts.
func (p *Progress) HistoryOf(step string) (ports.StepHistory, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, ok := p.history[step]
	return h, ok
}

// HasUnfinished reports whether a step of the instance did not complete.
func (p *Progress) HasUnfinished() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.history {
		if h.Last.Status != core.StatusCompleted || h.Attempts > 1 {
			return true
		}
	}
	return false
}

// RecordPassed notes a step that is not run again.
func (p *Progress) RecordPassed(s core.StepExecution) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps[s.Name] = s
}

// Record notes a step that ran.
func (p *Progress) Record(s core.StepExecution) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.history[s.Name]
	if h.Last.ID != s.ID && s.ExitCode != core.ExitNoop {
		h.Attempts++
	}
	h.Last = s
	p.history[s.Name], p.steps[s.Name] = h, s
}

// RecordEnd notes the end of a step that ran.
func (p *Progress) RecordEnd(s core.StepExecution) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.history[s.Name]
	h.Last = s
	p.history[s.Name], p.steps[s.Name] = h, s
}

// Steps returns a copy of the steps of this execution.
func (p *Progress) Steps() map[string]core.StepExecution {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.steps)
}

// HasRun reports whether the step ran in the execution.
func (p *Progress) HasRun(step string, id core.JobExecutionID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.steps[step]
	return ok && s.JobExecutionID == id
}

// Parts returns the newest executions of a step's partitions, by name.
func (p *Progress) Parts(step string) map[string]core.StepExecution {
	p.mu.Lock()
	defer p.mu.Unlock()
	prefix := core.PartName(step, "")
	parts := map[string]core.StepExecution{}
	for name, h := range p.history {
		if part, is := strings.CutPrefix(name, prefix); is {
			parts[part] = h.Last
		}
	}
	return parts
}
