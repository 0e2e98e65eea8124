package testahead

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

type kind string

const (
	// skippable, retryable, both and fatal are an error's own classes.
	skippable kind = "skippable"
	retryable kind = "retryable"
	both      kind = "both"
	fatal     kind = "fatal"
	// panics: the component panics, with an error that would like to be retried and
	// skipped; leaves: it ends its goroutine (rule C13).
	panics kind = "panicking"
	leaves kind = "leaving"
	// stops, cancels and expires: nothing fails, but a stop is requested, the context ends, or the lease is
	// over.
	stops   kind = "stop"
	cancels kind = "cancel"
	expires kind = "expire"
	// refused: the database rolls back instead of the commit, and reports it; lostBefore and lostAfter: it
	// does not answer, and did nothing, or committed (rule C10).
	refused    kind = "refused"
	lostBefore kind = "lost before"
	lostAfter  kind = "lost after"
)

type point string

const (
	// Calls about one item.
	atRead           point = "read"
	atProcess        point = "process"
	atWrite          point = "write"
	atMark           point = "mark"
	atOnProcessError point = "on_process_error"
	atProcessRetry   point = "before_retry of process"
	// Calls of the reader.
	atRawText    point = "raw text"
	atSkipItem   point = "skip item"
	atPosition   point = "position"
	atPositionAt point = "position at"
	// Calls of writers.
	atPrepare        point = "prepare"
	atWriterPosition point = "position of a writer"
	atRewind         point = "rewind"
	atRelease        point = "release"
	atComplete       point = "complete"
	atFinish         point = "finish"
	// Calls of listeners.
	atBeforeChunk   point = "before_chunk"
	atAfterChunk    point = "after_chunk"
	atOnChunkError  point = "on_chunk_error"
	atOnReadError   point = "on_read_error"
	atBeforeWrite   point = "before_write"
	atAfterWrite    point = "after_write"
	atOnWriteError  point = "on_write_error"
	atOnSkipRead    point = "on_skip_read"
	atOnSkipProcess point = "on_skip_process"
	atOnSkipWrite   point = "on_skip_write"
	atReadRetry     point = "before_retry of read"
	atWriteRetry    point = "before_retry of write"
	// Calls of policy and database.
	atAdmit      point = "admit"
	atBegin      point = "begin"
	atCheckpoint point = "checkpoint"
	atCommit     point = "commit"
	atReclaim    point = "reclaim"
)

const anyPlace = -1

type fault struct {
	At    point
	Kind  kind
	Place int // of the item
	// Call is the only call at which it happens, from 1: of the calls about the item, of the writer's, or of
	// all at this point; 0 means each.
	Call int
	// Times is how often it happens in a launch; 0 means always.
	Times    int
	MinBatch int
}

func (f fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", f.Kind, f.At)
	if f.Place != anyPlace {
		fmt.Fprintf(&b, " of item %d", f.Place)
	}
	for _, n := range []struct {
		name string
		n    int
	}{{"call", f.Call}, {"times", f.Times}, {"min batch", f.MinBatch}} {
		if n.n > 0 {
			fmt.Fprintf(&b, ", %s %d", n.name, n.n)
		}
	}
	return b.String()
}

func draw[T any](t *rapid.T, label string, list ...T) T {
	return rapid.SampledFrom(list).Draw(t, label)
}

func (s *scenario) fault(t *rapid.T) fault {
	return draw(t, "of",
		s.readFault, s.processFault, s.beforeChunkFault, s.writeFault, s.serialFault, s.readFault, s.processFault, s.itemFault, s.serialFault)(t)
}

func (s *scenario) place(t *rapid.T) int {
	return rapid.IntRange(0, max(0, s.Items-1)).Draw(t, "place")
}

func errorKind(t *rapid.T) kind {
	return draw(t, "kind", skippable, both, retryable, fatal, panics, leaves)
}

// anyKind draws a kind that may happen on the committing goroutine.
func anyKind(t *rapid.T) kind {
	return draw(t, "kind", skippable, both, retryable, fatal, panics, stops, cancels, expires)
}

// readFault draws a fault of the first attempt at an item, of the second, or of all.
func (s *scenario) readFault(t *rapid.T) fault {
	return fault{At: atRead, Place: s.place(t), Kind: errorKind(t), Call: draw(t, "call", 0, 1, 0, 2)}
}

// processFault is readFault for a processor. Goroutines that share a chunk process it again if one of its
// items failed ahead (rule C19): then it is not determined which attempt is the second.
func (s *scenario) processFault(t *rapid.T) fault {
	calls := []int{0, 1, 0, 1, 2}
	if s.Workers > 1 {
		calls = calls[:4]
	}
	return fault{At: atProcess, Place: s.place(t), Kind: errorKind(t), Call: rapid.SampledFrom(calls).Draw(t, "call")}
}

func (s *scenario) itemFault(t *rapid.T) fault {
	return fault{
		At: draw(t, "point", atOnProcessError, atProcessRetry, atMark, atOnProcessError), Place: s.place(t),
		Kind: draw(t, "kind", skippable, fatal, panics),
	}
}

func (s *scenario) writeFault(t *rapid.T) fault {
	f := fault{
		At: atWrite, Kind: draw(t, "kind", skippable, both, retryable, fatal, panics, stops, cancels, expires, skippable),
		Call: draw(t, "call", 0, 1, 0, 2, 3), Times: draw(t, "times", 0, 1, 0, 2), MinBatch: draw(t, "min batch", 0, 2, 0),
	}
	if f.Place = s.place(t); draw(t, "whole", false, true, false) {
		f.Place = anyPlace
	}
	return f
}

func (s *scenario) beforeChunkFault(t *rapid.T) fault {
	return fault{At: atBeforeChunk, Kind: draw(t, "kind", stops, fatal, stops, cancels, expires, skippable, panics, stops), Place: anyPlace, Call: draw(t, "call", 2, 3, 4, 1, 5)}
}

// serialFault draws a fault of a call on the committing goroutine.
func (s *scenario) serialFault(t *rapid.T) fault {
	f := fault{At: rapid.SampledFrom(s.serialPoints()).Draw(t, "point"), Place: anyPlace, Call: rapid.IntRange(1, 6).Draw(t, "call"), Times: 1}
	switch f.At {
	case atCommit:
		f.Kind = draw(t, "kind", refused, lostBefore, lostAfter)
	case atBegin:
		f.Kind = draw(t, "kind", skippable, both, retryable, fatal)
	default:
		f.Kind = anyKind(t)
	}
	return f
}

// serialPoints are the other points that the scenario reaches on the committing goroutine.
func (s *scenario) serialPoints() []point {
	list := []point{
		atCommit, atOnReadError, atOnWriteError, atCheckpoint, atBegin, atAfterChunk, atCommit,
		atAfterWrite, atOnSkipRead, atOnSkipProcess, atOnSkipWrite, atOnChunkError, atReadRetry, atWriteRetry, atReclaim,
	}
	if s.Restart != counts {
		list = append(list, atPosition)
	}
	if s.Restart == marks {
		list = append(list, atPositionAt)
	}
	switch s.Reading {
	case consumes:
		list = append(list, atRawText)
	case stepsOver:
		list = append(list, atSkipItem)
	case stuck:
	}
	if s.SkipLimit >= 0 {
		list = append(list, atAdmit)
	}
	if s.BeforeWrite {
		list = append(list, atBeforeWrite)
	}
	if s.has(file) {
		list = append(list, atPrepare, atWriterPosition, atRewind, atRelease, atFinish)
	}
	if s.has(completing) {
		list = append(list, atComplete)
	}
	return list
}

// racingFault draws a fault of the goroutine that reads and processes: when the committing one sees it is not
// determined.
func (s *scenario) racingFault(t *rapid.T) fault {
	return fault{At: draw(t, "point", atRead, atProcess), Place: s.place(t), Kind: draw(t, "kind", stops, cancels, expires), Times: 1}
}
