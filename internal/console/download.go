package console

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	// sendTime is the time in which a reader must take the sent bytes.
	sendTime   = 30 * time.Second
	rowsAtOnce = 500
)

// logFile has the lines of the log that its page selects, from the first on.
func (v download) logFile() (*page, error) {
	req := operator.LogRequest{
		Execution: v.executionID(), Attempt: int(v.key("attempt")), Step: v.text("step"), Level: v.text("level"), Text: v.text("text"),
	}
	log, err := v.Service.Log(v.r.Context(), req)
	if err != nil {
		return nil, err
	}
	file := v.attachment(fmt.Sprintf("%s-%d-log.txt", log.JobName, log.Execution), "text/plain; charset=utf-8")
	for {
		for i := range log.Lines {
			file.text(v.masked(wording.LogLine(log.Lines[i])) + "\n")
		}
		if !log.More || file.err != nil {
			return file.end(nil)
		}
		req.After = log.Next
		if log, err = v.Service.Log(v.r.Context(), req); err != nil {
			return file.end(err)
		}
	}
}

// skipsToEdit is the export of the command, for surfin skips redrive --from.
func (v download) skipsToEdit() (*page, error) {
	req := v.skipsRequest()
	if _, err := v.Service.Skips(v.r.Context(), req); err != nil { // of wrong filters
		return nil, err
	}
	file := v.attachment(fmt.Sprintf("execution-%d-skips.jsonl", req.Execution), "application/x-ndjson")
	_, err := v.Service.ExportSkips(v.r.Context(), req, &lineWriter{to: file, mask: v.maskJSON})
	return file.end(err)
}

func (v download) skipsTable() (*page, error) {
	req := v.skipsRequest()
	req.Limit = rowsAtOnce
	found, err := v.Service.Skips(v.r.Context(), req)
	if err != nil {
		return nil, err
	}
	file := v.attachment(fmt.Sprintf("execution-%d-skips.csv", req.Execution), "text/csv; charset=utf-8")
	rows := csv.NewWriter(file)
	err = rows.Write(wording.SkipColumns())
	for err == nil {
		for i := range found.Items {
			cells := wording.SkipCells(&found.Items[i])
			for c := range cells {
				cells[c] = inertCell(v.masked(cells[c]))
			}
			if err = rows.Write(cells); err != nil {
				break
			}
		}
		if found.Next == 0 || err != nil {
			break
		}
		req.After = found.Next
		found, err = v.Service.Skips(v.r.Context(), req)
	}
	rows.Flush()
	return file.end(cmp.Or(err, rows.Error()))
}

// inertCell is a cell that no spreadsheet runs as a formula.
func inertCell(text string) string {
	if first, _ := utf8.DecodeRuneInString(text); !strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}

func (v download) skipsRequest() operator.SkipsRequest {
	return operator.SkipsRequest{Execution: v.executionID(), Step: v.text("step"), Phase: core.Phase(v.text("phase")), Left: v.text("left") == "true"}
}

// definitionFile is a file of the job as the execution had it: the job file unless file names another.
func (v download) definitionFile() (*page, error) {
	shown, err := v.Service.Show(v.r.Context(), operator.ShowRequest{Execution: v.executionID(), Definition: true})
	if err != nil {
		return nil, err
	}
	name := v.text("file")
	for i, f := range shown.Definition {
		if f.Name != name && (name != "" || i > 0) {
			continue
		}
		file := v.attachment(fmt.Sprintf("%d-%s", shown.ID, filepath.Base(cmp.Or(f.Name, shown.JobName+".yaml"))), "text/plain; charset=utf-8")
		file.text(v.masked(f.Text))
		return file.end(nil)
	}
	none := &missing{what: "This definition has no file " + clip(name, shortText) + "."}
	for _, f := range shown.Definition {
		none.near = append(none.near, link{clip(f.Name, lineText), v.with("file", f.Name)})
	}
	return nil, none
}

// itemFile is a skipped item as it is stored: the raw text, or JSON.
func (v download) itemFile() (*page, error) {
	s, err := v.Service.Skip(v.r.Context(), v.number("skip"))
	if err != nil {
		return nil, err
	}
	file := v.attachment(fmt.Sprintf("skipped-item-%d.txt", s.ID), "text/plain; charset=utf-8")
	file.text(v.masked(itemOf(s)))
	return file.end(nil)
}

func (v download) maskJSON(line []byte) []byte {
	if v.MaskJSON == nil {
		return line
	}
	return v.MaskJSON(line)
}

// fileLink is the address of a file with the filters of this page.
func (v ofExecution) fileLink(of core.JobExecutionID, name string) string {
	q := v.r.URL.Query()
	for _, key := range []string{"after", "before"} {
		q.Del(key)
	}
	u := url.URL{Path: v.executionLink(of).Href + "/" + name, RawQuery: q.Encode()}
	return u.String()
}

// attachment is a file on its way to the browser. Its first bytes are sent when there are many, or at its
// end: until then an error can be shown as a page.
type attachment struct {
	v          download
	name, kind string
	begun      bool
	buffered   *bufio.Writer
	controller *http.ResponseController
	err        error
}

func (v download) attachment(name, kind string) *attachment {
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
