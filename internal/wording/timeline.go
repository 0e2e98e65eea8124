package wording

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
)

// mostInChain is how many steps of a critical path are named.
const mostInChain = 6

// CriticalPath says which chain of steps decided how long the newest attempt took; "" if it ran none.
func CriticalPath(t *operator.Timeline) string {
	c := t.Critical
	if c == nil {
		return ""
	}
	total := humanize.Seconds(c.Total)
	if c.Lasts {
		total += " so far"
	}
	of := "Of " + total
	if c.Attempt > 1 {
		of = fmt.Sprintf("Of the %s of attempt %d", total, c.Attempt)
	}
	if len(c.Steps) == 1 {
		return fmt.Sprintf("%s, step %s.", of, tookStep(c.Steps[0], "took "))
	}
	return fmt.Sprintf("%s, %s one after another took %s: %s.", of, humanize.Plural(len(c.Steps), "step"), humanize.Seconds(c.Duration), strings.Join(chain(c.Steps), ", "))
}

// chain names the longest steps, in order.
func chain(steps []operator.CriticalStep) []string {
	named := slices.Clone(steps)
	left := 0
	if len(steps) > mostInChain {
		slices.SortStableFunc(named, func(a, b operator.CriticalStep) int { return cmp.Compare(b.Duration, a.Duration) })
		named = named[:mostInChain-1]
		left = len(steps) - len(named)
		slices.SortFunc(named, func(a, b operator.CriticalStep) int { return cmp.Compare(a.ID, b.ID) })
	}
	var words []string
	for _, s := range named {
		words = append(words, tookStep(s, ""))
	}
	if left > 0 {
		words = append(words, humanize.Count(left)+" shorter ones")
	}
	return words
}

func tookStep(s operator.CriticalStep, verb string) string {
	name := s.Step
	if s.Round > 0 {
		name += fmt.Sprintf(" (round %d)", s.Round)
	}
	var more []string
	if s.Parked > 0 {
		more = append(more, humanize.Seconds(s.Parked)+" of it parked")
	}
	if p := s.Part; p != nil {
		more = append(more, fmt.Sprintf("longest partition %s: %s%s", p.Name, humanize.Seconds(p.Duration), onWorker(p.Process, p.Worker)))
	}
	text := name + " " + verb + humanize.Seconds(s.Duration)
	if len(more) > 0 {
		text += " (" + strings.Join(more, "; ") + ")"
	}
	return text
}

func onWorker(p *operator.Process, worker string) string {
	if text := Worker(p, worker); text != "" {
		return " on " + text
	}
	return ""
}

// Worker names the process that has, or had, some work: "worker a" or "process 12 on host"; "" if none is known.
func Worker(p *operator.Process, worker string) string {
	switch {
	case worker != "":
		return "worker " + worker
	case p != nil:
		return Process(p.PID, p.Host)
	}
	return ""
}

// Process names a process.
func Process(pid int, host string) string { return fmt.Sprintf("process %d on %s", pid, host) }

// SpanState is the status of a span, or why it waited.
func SpanState(s *operator.Span) string {
	switch {
	case s.Kind == operator.SpanWait && s.Wait == operator.WaitQueued:
		return "waits for a worker"
	case s.Kind == operator.SpanWait:
		return "parked"
	case s.Lost:
		return "lost by its worker"
	case s.Returned:
		return "returned by its worker"
	}
	return s.Status
}

// Omitted counts the steps that a time line leaves out; "" if nothing.
func Omitted(t *operator.Timeline) string {
	if t.Omitted == 0 {
		return ""
	}
	return fmt.Sprintf("Left out: %s step executions, the oldest ones.", humanize.Count(t.Omitted))
}

// LaneStatuses counts the parts or tasks of a lane: "12 COMPLETED, 1 FAILED, 1 lost".
func LaneStatuses(l *operator.Lane) string {
	var words []string
	for _, status := range slices.Sorted(maps.Keys(l.Statuses)) {
		words = append(words, humanize.Count(l.Statuses[status])+" "+status)
	}
	for _, of := range []struct {
		n    int
		word string
	}{{l.Lost, "lost"}, {l.Returned, "returned"}} {
		if of.n > 0 {
			words = append(words, humanize.Count(of.n)+" "+of.word)
		}
	}
	return humanize.Join(words)
}
