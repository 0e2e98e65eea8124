package runlog

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// book is the log of an execution in memory.
type book struct {
	execution core.JobExecutionID
	scopes    map[string]*scope
	queue     []ports.LogLine // not stored
	flying    int             // lines that are being stored
	used      int64           // bytes that are stored, by all processes, and of the queue
	full      bool            // lines go to beyond until the end of the work
	beyond    ring
	dropped   int64 // before those in beyond
	leftOut   ports.LogLeftOut
	lost      int64
	touched   time.Time
	ended     bool
}

// scope are the lines of a step with its parts, or those outside of steps.
type scope struct {
	running int
	kinds   map[string]*kind
}

// kind are the lines of one event in a scope.
type kind struct {
	n       int64
	last    ring
	between int64
}

// book returns the log of an execution. The caller has l.mu.
func (l *Log) book(id core.JobExecutionID) *book {
	b := l.books[id]
	if b == nil {
		b = &book{execution: id, scopes: map[string]*scope{}, beyond: ring{bytes: l.reserve / 2}}
		l.books[id] = b
	}
	b.touched = time.Now()
	return b
}

func (b *book) scope(step string) *scope {
	s := b.scopes[step]
	if s == nil {
		s = &scope{kinds: map[string]*kind{}}
		b.scopes[step] = s
	}
	return s
}

func (b *book) isRunning() bool {
	for _, s := range b.scopes {
		if s.running > 0 {
			return true
		}
	}
	return false
}

// thin keeps the first lines of an event, and holds the last ones back; it returns true if the line is kept now.
func (l *Log) thin(b *book, s *scope, line ports.LogLine) bool {
	key := line.Event + " " + line.Level.String()
	k := s.kinds[key]
	if k == nil {
		k = &kind{last: ring{bytes: l.reserve / 2}}
		s.kinds[key] = k
	}
	if k.n++; k.n <= first {
		return l.enqueue(b, line, false)
	}
	k.between += k.last.push(line)
	return false
}

// release adds the last lines of each event, with the number of those between.
func (l *Log) release(b *book, s *scope) {
	for _, key := range slices.Sorted(maps.Keys(s.kinds)) {
		k := s.kinds[key]
		lines := k.last.take()
		if k.between > 0 && len(lines) > 0 {
			about := lines[0]
			about.Attributes = ""
			l.notice(b, about, slog.LevelInfo, eventThinned, fmt.Sprintf("%d lines of %s are left out here, between the first and the last %d", k.between, lines[0].Event, last),
				slog.String("event", lines[0].Event), slog.Int64("lines", k.between))
			b.leftOut.Thinned += k.between
			k.between = 0
		}
		for _, line := range lines {
			l.enqueue(b, line, false)
		}
	}
}

func (l *Log) releaseAll(b *book) {
	for _, step := range slices.Sorted(maps.Keys(b.scopes)) {
		l.release(b, b.scopes[step])
	}
	l.releaseBeyond(b)
}

// releaseBeyond adds the last lines of a log that is full, as far as there is room.
func (l *Log) releaseBeyond(b *book) {
	lines := b.beyond.take()
	room := min(l.reserve/2, l.config.Limit-b.used-l.reserve/4)
	for size := sizeOf(lines); size > room && len(lines) > 0; lines = lines[1:] {
		size -= lines[0].Bytes()
		b.dropped++
	}
	if b.dropped > 0 {
		l.notice(b, ports.LogLine{Execution: b.execution}, slog.LevelWarn, eventBound,
			fmt.Sprintf("%d lines are left out here: the log of an execution has at most %d bytes (log.execution_bytes)", b.dropped, l.config.Limit),
			slog.Int64("lines", b.dropped), slog.Int64("limit", l.config.Limit))
		b.leftOut.Bound += b.dropped
		b.dropped = 0
	}
	for _, line := range lines {
		l.enqueue(b, line, true)
	}
}

// notice adds a line about the log itself, at the step of another one.
func (l *Log) notice(b *book, at ports.LogLine, level slog.Level, event, message string, attrs ...slog.Attr) {
	line := l.newLine(level, event, message)
	line.Execution, line.StepExecution, line.Step, line.Part = b.execution, at.StepExecution, at.Step, at.Part
	values := newValues(l.config.Mask)
	for _, a := range attrs {
		values.add(a)
	}
	line.Attributes = values.text()
	l.enqueue(b, line, true)
}

// enqueue adds a line to those that will be stored, unless the log is full: essential lines have room of their own.
func (l *Log) enqueue(b *book, line ports.LogLine, essential bool) bool {
	size, room := line.Bytes(), l.config.Limit
	if !essential {
		room -= l.reserve
		b.full = b.full || b.used+size > room
	}
	switch {
	case !essential && b.full:
		b.dropped += b.beyond.push(line)
		return false
	case b.used+size > room:
		b.leftOut.Bound++
		return false
	case l.pending+size > maxPending || l.closed:
		b.lost++
		return false
	}
	l.number++
	line.Number = l.number
	b.queue = append(b.queue, line)
	b.used += size
	l.pending += size
	l.start()
	signal(l.wake)
	if len(b.queue) >= batchLines {
		l.hurry()
	}
	return true
}

func sizeOf(lines []ports.LogLine) (n int64) {
	for i := range lines {
		n += lines[i].Bytes()
	}
	return n
}

// ring holds the last lines, within bounds.
type ring struct {
	bytes int64
	lines []ports.LogLine
	at    int // the oldest one, when it is full
	size  int64
}

// push returns the number of lines that it dropped for the new one.
func (r *ring) push(line ports.LogLine) (dropped int64) {
	const most = 2 << 10
	line.Message, line.Attributes = cut(line.Message, most), cutObject(line.Attributes, most)
	if len(r.lines) < last {
		r.lines = append(r.lines, line)
	} else {
		r.size -= r.lines[r.at].Bytes()
		r.lines[r.at], r.at = line, (r.at+1)%last
		dropped = 1
	}
	r.size += line.Bytes()
	for r.size > r.bytes && len(r.lines) > 1 {
		r.lines, r.at = r.inOrder(), 0
		r.size -= r.lines[0].Bytes()
		r.lines = slices.Delete(r.lines, 0, 1)
		dropped++
	}
	return dropped
}

func cutObject(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return `{"left_out":true}`
}

func (r *ring) inOrder() []ports.LogLine {
	return slices.Concat(r.lines[r.at:], r.lines[:r.at])
}

func (r *ring) take() []ports.LogLine {
	lines := r.inOrder()
	r.lines, r.at, r.size = nil, 0, 0
	return lines
}
