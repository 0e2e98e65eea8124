package runlog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

const (
	// keptOutput is the number of bytes of an output that are kept of its begin, and of its end.
	keptOutput = 256 << 10
	// rowBytes is the size of a line of the log with lines of an output.
	rowBytes = 8 << 10
)

// Output is an output of a process that a step runs, as part of the log: its begin is stored while the process runs,
// and its end with the number of bytes between at Close. Write never fails and never blocks.
type Output struct {
	origin *origin
	stream string

	mu      sync.Mutex
	begin   int    // bytes of the begin so far
	pending []byte // of the begin, not in the log yet
	end     []byte
	dropped int64 // before end
	tail    bool  // the last row ended within a line
	closed  bool
}

// NewOutput returns an output of the step of ctx; it keeps nothing if there is none. The caller closes it.
func NewOutput(ctx context.Context, stream string) io.WriteCloser {
	o := originOf(ctx)
	if o == nil {
		return nothing{}
	}
	out := &Output{origin: o, stream: stream}
	o.log.keep(out)
	return out
}

type nothing struct{}

func (nothing) Write(p []byte) (int, error) { return len(p), nil }
func (nothing) Close() error                { return nil }

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(len(p), keptOutput-o.begin)
	wake := n > 0 && len(o.pending) == 0
	o.pending = append(o.pending, p[:n]...)
	o.begin += n
	o.end = append(o.end, p[n:]...)
	if over := len(o.end) - 2*keptOutput; over > 0 { // seldom, so that little is copied
		drop := len(o.end) - keptOutput
		o.dropped += int64(drop)
		o.end = append(o.end[:0], o.end[drop:]...)
	}
	if wake {
		o.origin.log.awake()
	}
	return len(p), nil
}

// Close adds the rest to the log.
func (o *Output) Close() error {
	o.flush(true)
	o.origin.log.drop(o)
	return nil
}

// flush adds whole lines to the log; the last time all that is left.
func (o *Output) flush(final bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if o.closed = final; !final {
		o.pending = o.rows(o.pending, false)
		return
	}
	if drop := len(o.end) - keptOutput; drop > 0 {
		o.dropped += int64(drop)
		o.end = o.end[drop:]
	}
	if o.dropped == 0 {
		o.rows(append(o.pending, o.end...), true)
		return
	}
	o.pending = o.rows(o.pending, false)
	if len(o.pending) > 0 {
		o.row(o.pending, true)
	}
	line := o.origin.line(slog.LevelInfo, eventOutput, fmt.Sprintf("%d bytes of %s are left out here", o.dropped, o.stream))
	line.Attributes = o.attributes(slog.Int64("left_out_bytes", o.dropped))
	o.origin.add(line)
	o.tail = true
	o.rows(bytes.TrimLeftFunc(o.end, func(r rune) bool { return r == '\uFFFD' }), true)
}

// rows adds rows of whole lines, and returns the rest.
func (o *Output) rows(text []byte, final bool) []byte {
	for len(text) > 0 {
		row := text[:min(len(text), rowBytes)]
		at := bytes.LastIndexByte(row, '\n') + 1
		switch {
		case at > 0:
			o.row(row[:at], false)
			text = text[at:]
		case len(row) == rowBytes: // a long line
			o.row(row, true)
			text = text[len(row):]
		case final:
			o.row(row, false)
			return nil
		default:
			return bytes.Clone(text)
		}
	}
	return nil
}

// row adds a row. An ellipsis is where a line was cut: a part of a secret next to it is masked.
func (o *Output) row(text []byte, cutOff bool) {
	message := strings.ToValidUTF8(strings.TrimRight(string(text), "\r\n"), "\uFFFD")
	if o.tail {
		message = "…" + message
	}
	if o.tail = cutOff; cutOff {
		message += "…"
	}
	line := o.origin.line(slog.LevelInfo, eventOutput, message)
	line.Attributes = o.attributes()
	o.origin.add(line)
}

func (o *Output) attributes(more ...slog.Attr) string {
	values := o.origin.log.newValues()
	values.add(slog.String("stream", o.stream))
	for _, a := range more {
		values.add(a)
	}
	return values.text()
}
