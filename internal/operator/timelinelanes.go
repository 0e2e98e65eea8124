package operator

import (
	"cmp"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// lanes adds up parts and tasks by step and worker, and keeps the longest and the failed ones.
type lanes struct {
	now   time.Time
	byKey map[laneKey]*Lane
	order []laneKey
	apart map[core.StepExecutionID]*exceptional
}

type laneKey struct {
	kind    SpanKind
	of      core.StepExecutionID
	process Process
	worker  string
}

func newLanes(now time.Time) *lanes {
	return &lanes{now: now, byKey: map[laneKey]*Lane{}, apart: map[core.StepExecutionID]*exceptional{}}
}

func (l *lanes) add(s Span, step string) {
	lane := l.of(&s, step)
	if s.Kind == SpanWait {
		lane.Waited += s.Duration
		if s.Ended.IsZero() { // no worker had it yet
			lane.Count++
			lane.Statuses[string(core.StatusStarting)]++
		}
		return
	}
	if s.Lost {
		lane.Lost++
	}
	if s.Returned {
		lane.Returned++
	}
	if !s.isPast() {
		lane.Count++
		lane.Statuses[s.Status]++
	}
	if lane.Started.IsZero() || s.Started.Before(lane.Started) {
		lane.Started = s.Started
	}
	if lane.lasts = lane.lasts || s.Ended.IsZero(); lane.lasts {
		lane.Ended = time.Time{}
	} else if s.Ended.After(lane.Ended) {
		lane.Ended = s.Ended
	}
	lane.Busy += s.Duration
	lane.Read, lane.Written, lane.Filtered, lane.Skipped = lane.Read+s.Read, lane.Written+s.Written, lane.Filtered+s.Filtered, lane.Skipped+s.Skipped
	if !s.isPast() {
		e := l.apart[s.Of]
		if e == nil {
			e = &exceptional{}
			l.apart[s.Of] = e
		}
		e.add(s)
	}
}

// of returns the lane of a span. A wait is counted where no worker is, because the one that ended it need not have caused it.
func (l *lanes) of(s *Span, step string) *Lane {
	kind := s.Kind
	if kind == SpanWait {
		if kind = SpanPart; s.Task != 0 {
			kind = SpanTask
		}
	}
	key := laneKey{kind: kind, of: s.Of, worker: s.Worker}
	if s.Process != nil {
		key.process = *s.Process
	}
	lane := l.byKey[key]
	if lane == nil {
		lane = &Lane{
			Kind: kind, Name: step, Attempt: s.Attempt, Execution: s.Execution, Of: s.Of, Process: s.Process, Worker: s.Worker, Statuses: map[string]int{},
		}
		l.byKey[key] = lane
		l.order = append(l.order, key)
	}
	return lane
}

func (l *lanes) list() []Lane {
	list := make([]Lane, 0, len(l.order))
	for _, key := range l.order {
		list = append(list, *l.byKey[key])
	}
	slices.SortStableFunc(list, func(a, b Lane) int {
		return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.Kind, b.Kind), a.Started.Compare(b.Started))
	})
	return list
}

// exceptional are the parts or tasks of a step that stay apart: the longest five, and the first hundred that failed.
type exceptional struct{ longest, failed []Span }

func (e *exceptional) add(s Span) {
	if isFailed(s.Status) && len(e.failed) < failuresInLane {
		e.failed = append(e.failed, s)
	}
	at, _ := slices.BinarySearchFunc(e.longest, s, func(a, b Span) int { return cmp.Compare(b.Duration, a.Duration) })
	if at < longestInLane {
		e.longest = slices.Insert(e.longest, at, s)
		e.longest = e.longest[:min(len(e.longest), longestInLane)]
	}
}

func isFailed(status string) bool {
	switch status {
	case string(core.StatusFailed), string(core.StatusUnknown), string(task.TimedOut):
		return true
	}
	return false
}

func (e *exceptional) spans() []Span {
	if e == nil {
		return nil
	}
	list := slices.Clone(e.failed)
	for _, s := range e.longest {
		s.Longest = true
		same := func(f Span) bool { return f.Step == s.Step && f.Task == s.Task && f.Try == s.Try }
		if at := slices.IndexFunc(list, same); at >= 0 {
			list[at].Longest = true
			continue
		}
		list = append(list, s)
	}
	return list
}
