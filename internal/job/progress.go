package job

import (
	"maps"
	"strings"
	"sync"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// progress is the state that the branches of an execution share. It is safe for concurrent use.
type progress struct {
	mu sync.Mutex
	// history holds the newest execution of each step in the instance, and its number of attempts.
	history map[string]ports.StepHistory
	// steps are the steps that ran, or were passed, in this execution.
	steps map[string]core.StepExecution
	// unwritten are rows of the journal that wait for the next write.
	unwritten []ports.FlowVisit
}

func newProgress(history map[string]ports.StepHistory) *progress {
	if history == nil {
		history = map[string]ports.StepHistory{}
	}
	return &progress{history: history, steps: map[string]core.StepExecution{}}
}

// clone copies the steps and their history, for a plan made during the walk.
func (p *progress) clone() *progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &progress{history: maps.Clone(p.history), steps: maps.Clone(p.steps)}
}

// note keeps a row of the journal until the next write (rule F5).
func (p *progress) note(rows ...ports.FlowVisit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unwritten = append(p.unwritten, rows...)
}

// unwrittenVisits returns the rows that wait. Another branch may write them too.
func (p *progress) unwrittenVisits() []ports.FlowVisit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]ports.FlowVisit(nil), p.unwritten...)
}

func (p *progress) recordWritten(rows []ports.FlowVisit) {
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

// recall restores the steps from the history: this execution's as run, and the completed ones of
// earlier executions as passed.
func (p *progress) recall(id core.JobExecutionID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, h := range p.history {
		if h.Last.Manager == 0 && h.Last.Status.IsOver() && (h.Last.JobExecutionID == id || h.Last.Status == core.StatusCompleted) {
			p.steps[name] = h.Last
		}
	}
}

// lastBefore returns the step of the same log with the greatest ordinal before the visit, or nil.
func (p *progress) lastBefore(v core.Visit) (last *core.StepExecution) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.steps {
		if s.Visit.Flow == v.Flow && s.Visit.Ordinal < v.Ordinal && (last == nil || s.Visit.Ordinal > last.Visit.Ordinal) {
			last = &s
		}
	}
	return last
}

func (p *progress) historyOf(step string) (ports.StepHistory, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, ok := p.history[step]
	return h, ok
}

// hasUnfinished reports whether a step of the instance did not complete, in this execution or in an
// earlier one.
func (p *progress) hasUnfinished() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.history {
		if h.Last.Status != core.StatusCompleted || h.Attempts > 1 {
			return true
		}
	}
	return false
}

func (p *progress) recordSkipped(s core.StepExecution) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps[s.Name] = s
}

func (p *progress) record(s core.StepExecution) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.history[s.Name]
	if h.Last.ID != s.ID && s.ExitCode != core.ExitNoop {
		h.Attempts++
	}
	h.Last = s
	p.history[s.Name], p.steps[s.Name] = h, s
}

// recordEnd notes the end of a step that is known to have run.
func (p *progress) recordEnd(s core.StepExecution) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.history[s.Name]
	h.Last = s
	p.history[s.Name], p.steps[s.Name] = h, s
}

// seen returns a copy of the steps of this execution.
func (p *progress) seen() map[string]core.StepExecution {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.steps)
}

func (p *progress) hasRun(step string, id core.JobExecutionID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.steps[step]
	return ok && s.JobExecutionID == id
}

func (p *progress) parts(step string) map[string]core.StepExecution {
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
