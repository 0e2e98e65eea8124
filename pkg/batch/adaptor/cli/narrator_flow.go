package cli

import (
	"context"
	"log/slog"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// decided, elementSkipped and gateChecked tell where the flow went, and why.
func (n *narrator) decided(ctx context.Context, e core.Decided) {
	verb := "decided"
	if e.Kept {
		verb = "decision kept from an earlier attempt"
	}
	n.log.InfoContext(ctx, verb, "element", e.Element, "verdict", e.Verdict)
}

func (n *narrator) elementSkipped(ctx context.Context, e core.ElementSkipped) {
	n.log.InfoContext(ctx, "passed by: its condition does not hold", "element", e.Element, "when", e.Condition)
}

func (n *narrator) gateChecked(ctx context.Context, e core.GateChecked) {
	subject := []any{"step", e.Step}
	if e.Step == "" {
		subject = []any{"job", e.JobName}
	}
	if e.Held {
		n.log.DebugContext(ctx, "what was expected holds", append(subject, "gate", e.Gate)...)
		return
	}
	n.log.WarnContext(ctx, "what was expected does not hold", append(subject, "gate", e.Gate)...)
}

// partsProgress is what the partitions of a running step have done: they are told
// as one, for there may be thousands.
type partsProgress struct {
	step     core.StepExecutionID // of the partitioned step
	counters map[core.StepExecutionID]core.Counters
	total    core.Counters
	ended    map[core.Status]int
	warned   int
}

// mostPartWarnings is how many failed partitions of a step get a line of their own.
const mostPartWarnings = 5

// partOf finds the running step that a partition is of. The caller holds n.mu.
func (n *narrator) partOf(s core.StepExecution) *partsProgress {
	for id, running := range n.running {
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

// partStarted reports whether the step is a partition, and notes it.
func (n *narrator) partStarted(ctx context.Context, s core.StepExecution) bool {
	n.mu.Lock()
	parts := n.partOf(s)
	if parts != nil {
		n.parts[s.ID] = parts
	}
	n.mu.Unlock()
	if parts == nil {
		return false
	}
	n.log.DebugContext(ctx, "partition started", "partition", s.Name)
	return true
}

// partEnded reports whether the step is a partition, and notes its end. The first
// failures are told; the partitioned step sums up the rest.
func (n *narrator) partEnded(ctx context.Context, s core.StepExecution) bool {
	n.mu.Lock()
	parts, ok := n.parts[s.ID]
	if !ok {
		n.mu.Unlock()
		return false
	}
	delete(n.parts, s.ID)
	parts.add(s.ID, s.Counters)
	parts.ended[s.Status]++
	level := slog.LevelDebug
	if s.Status == core.StatusFailed || s.Status == core.StatusUnknown {
		if parts.warned++; parts.warned <= mostPartWarnings {
			level = slog.LevelWarn
		}
	}
	delete(parts.counters, s.ID)
	n.mu.Unlock()
	attrs := []any{"partition", s.Name, "status", string(s.Status), "read", s.Counters.Read, "written", s.Counters.Write}
	if s.Error != "" {
		attrs = append(attrs, "error", oneLine(s.Error))
	}
	n.log.Log(ctx, level, "partition ended", attrs...)
	return true
}

// add brings the sum of all partitions up to date with what one of them has done so
// far.
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

// statusCounts is "12 COMPLETED, 2 FAILED".
func statusCounts(counts map[core.Status]int) string {
	var words []string
	for _, name := range statusNames() {
		if k := counts[core.Status(name)]; k > 0 {
			words = append(words, count(int64(k))+" "+name)
		}
	}
	return joinWords(words)
}
