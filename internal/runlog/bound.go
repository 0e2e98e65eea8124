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
	values := l.newValues()
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
