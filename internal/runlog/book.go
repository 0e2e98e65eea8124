package runlog

import (
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// last is the number of lines that are held back at most.
const last = 100

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
