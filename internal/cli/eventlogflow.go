package cli

import (
	"context"
	"log/slog"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// decided, elementSkipped and gateChecked log the path of the flow with reasons.
func (l *eventLog) decided(ctx context.Context, e core.Decided) {
	verb := "decided"
	if e.Kept {
		verb = "decision kept from an earlier attempt"
	}
	l.log.InfoContext(ctx, verb, "element", e.Element, "verdict", e.Verdict)
}

func (l *eventLog) tasksSubmitted(ctx context.Context, e core.TasksSubmitted) {
	l.log.InfoContext(ctx, "tasks submitted", "step", e.Step, "group", e.Group, "handler", e.Handler, "tasks", e.Tasks)
	for _, warning := range e.Warnings {
		l.log.WarnContext(ctx, warning, "step", e.Step, "group", e.Group)
	}
}

func (l *eventLog) elementSkipped(ctx context.Context, e core.ElementSkipped) {
	l.log.InfoContext(ctx, "passed by: its condition does not hold", "element", e.Element, "when", e.Condition)
}

func (l *eventLog) gateChecked(ctx context.Context, e core.GateChecked) {
	subject := []any{"step", e.Step}
	if e.Step == "" {
		subject = []any{"job", e.JobName}
	}
	if e.Held {
		l.log.DebugContext(ctx, "what was expected holds", append(subject, "gate", e.Gate)...)
		return
	}
	l.log.WarnContext(ctx, "what was expected does not hold", append(subject, "gate", e.Gate)...)
}

// partsProgress is the sum of the work of a running step's partitions. There may be thousands of
// them.
type partsProgress struct {
	step     core.StepExecutionID // of the partitioned step
	counters map[core.StepExecutionID]core.Counters
	total    core.Counters
	ended    map[core.Status]int
	warned   int
}

// maxPartWarnings is the number of failed partitions of a step with their own log line.
const maxPartWarnings = 5

// partOf returns the progress of the running step of a partition, or nil. The caller holds l.mu.
func (l *eventLog) partOf(s core.StepExecution) *partsProgress {
	for id, running := range l.running {
		if part, ok := strings.CutPrefix(s.Name, running.name+":"); !ok || part == "" {
			continue
		}
		if running.parts == nil {
			running.parts = &partsProgress{
				step: id, counters: map[core.StepExecutionID]core.Counters{}, ended: map[core.Status]int{},
			}
		}
		return running.parts
	}
	return nil
}

// partStarted reports whether the step is a partition, and records its start.
func (l *eventLog) partStarted(ctx context.Context, s core.StepExecution) bool {
	l.mu.Lock()
	parts := l.partOf(s)
	if parts != nil {
		l.parts[s.ID] = parts
	}
	l.mu.Unlock()
	if parts == nil {
		return false
	}
	l.log.DebugContext(ctx, "partition started", "partition", s.Name)
	return true
}

// partEnded reports whether the step is a partition, and records its end. It warns of the first
// failures; the partitioned step counts them all.
func (l *eventLog) partEnded(ctx context.Context, s core.StepExecution) bool {
	l.mu.Lock()
	parts, ok := l.parts[s.ID]
	if !ok {
		l.mu.Unlock()
		return false
	}
	delete(l.parts, s.ID)
	parts.add(s.ID, s.Counters)
	parts.ended[s.Status]++
	level := slog.LevelDebug
	if s.Status == core.StatusFailed || s.Status == core.StatusUnknown {
		if parts.warned++; parts.warned <= maxPartWarnings {
			level = slog.LevelWarn
		}
	}
	delete(parts.counters, s.ID)
	l.mu.Unlock()
	attrs := []any{"partition", s.Name, "status", string(s.Status), "read", s.Counters.Read, "written", s.Counters.Write}
	if s.Error != "" {
		attrs = append(attrs, "error", oneLine(s.Error))
	}
	l.log.Log(ctx, level, "partition ended", attrs...)
	return true
}

func (p *partsProgress) add(id core.StepExecutionID, c core.Counters) {
	p.total = p.total.Add(c).Add(negative(p.counters[id]))
	p.counters[id] = c
}

func negative(c core.Counters) core.Counters {
	return core.Counters{
		Read: -c.Read, Filter: -c.Filter, Write: -c.Write,
		ReadSkip: -c.ReadSkip, ProcessSkip: -c.ProcessSkip, WriteSkip: -c.WriteSkip,
		Commit: -c.Commit, Rollback: -c.Rollback,
	}
}

// statusCounts returns a text such as "12 COMPLETED, 2 FAILED".
func statusCounts(counts map[core.Status]int) string {
	var words []string
	for _, name := range statusNames() {
		if k := counts[core.Status(name)]; k > 0 {
			words = append(words, count(int64(k))+" "+name)
		}
	}
	return joinWords(words)
}
