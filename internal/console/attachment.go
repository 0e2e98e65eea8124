package console

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/access"
)

// sendTime is the time in which a reader must take the sent bytes.
const sendTime = 30 * time.Second

// attachment is a file on its way to the browser. Its first bytes are sent when there are many, or at its
// end: until then an error can be shown as a page.
type attachment struct {
	v          *visit
	name, kind string
	begun      bool
	buffered   *bufio.Writer
	controller *http.ResponseController
	err        error
}

func attach(v *visit, name, kind string) *attachment {
	const room = 64 << 10
	a := &attachment{v: v, name: name, kind: kind, controller: http.NewResponseController(v.w)}
	a.buffered = bufio.NewWriterSize(sending{a}, room)
	return a
}

func (a *attachment) Write(text []byte) (n int, err error) {
	n, err = a.buffered.Write(text)
	a.err = cmp.Or(a.err, err)
	return n, err
}

func (a *attachment) text(text string) { _, _ = a.Write([]byte(text)) } //nolint:errcheck // it keeps the error

// end sends the rest. After an error the connection breaks, so that a part is not taken for the whole.
func (a *attachment) end(err error) (*page, error) {
	if err == nil {
		err = a.buffered.Flush()
	}
	if err == nil && !a.begun {
		a.begin()
	}
	if err != nil && a.begun {
		a.v.Log.WarnContext(a.v.r.Context(), "a download broke off", "path", a.v.r.URL.Path, "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil, err
}

func (a *attachment) begin() {
	h := a.v.w.Header()
	access.SetPageHeaders(h)
	h.Set("Content-Type", a.kind)
	h.Set("Content-Disposition", `attachment; filename="`+fileName(a.name)+`"`)
	a.begun = true
}

// fileName has only characters that every system allows in names.
func fileName(text string) string {
	const most = 120
	text = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, text)
	return strings.TrimLeft(text[max(0, len(text)-most):], ".")
}

// sending writes to the browser.
type sending struct{ *attachment }

func (s sending) Write(text []byte) (int, error) {
	if !s.begun {
		s.begin()
	}
	if err := s.controller.SetWriteDeadline(time.Now().Add(sendTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return s.v.w.Write(text)
}

// lineWriter masks each line as a whole.
type lineWriter struct {
	to   *attachment
	mask func(line []byte) []byte
	rest []byte
}

func (w *lineWriter) Write(text []byte) (int, error) {
	w.rest = append(w.rest, text...)
	for {
		end := bytes.IndexByte(w.rest, '\n')
		if end < 0 {
			return len(text), nil
		}
		if _, err := w.to.Write(w.mask(w.rest[:end+1])); err != nil {
			return 0, err
		}
		w.rest = w.rest[end+1:]
	}
}

// jsonLines masks lines of JSON on their way into a file.
func jsonLines(to *attachment) *lineWriter {
	mask := to.v.MaskJSON
	if mask == nil {
		mask = func(line []byte) []byte { return line }
	}
	return &lineWriter{to: to, mask: mask}
}
