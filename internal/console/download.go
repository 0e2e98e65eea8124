package console

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const rowsAtOnce = 500

// logFile has the lines of the log that its page selects, from the first on.
func (v download) logFile() (*page, error) {
	req := operator.LogRequest{
		Execution: v.executionID(), Attempt: int(v.key("attempt")), Step: v.text("step"), Level: v.text("level"), Text: v.text("text"),
	}
	log, err := v.Service.Log(v.r.Context(), req)
	if err != nil {
		return nil, err
	}
	file := attach(v.visit, fmt.Sprintf("%s-%d-log.txt", log.JobName, log.Execution), "text/plain; charset=utf-8")
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
	file := attach(v.visit, fmt.Sprintf("execution-%d-skips.jsonl", req.Execution), "application/x-ndjson")
	_, err := v.Service.ExportSkips(v.r.Context(), req, jsonLines(file))
	return file.end(err)
}

func (v download) skipsTable() (*page, error) {
	req := v.skipsRequest()
	req.Limit = rowsAtOnce
	found, err := v.Service.Skips(v.r.Context(), req)
	if err != nil {
		return nil, err
	}
	file := attach(v.visit, fmt.Sprintf("execution-%d-skips.csv", req.Execution), "text/csv; charset=utf-8")
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
		file := attach(v.visit, fmt.Sprintf("%d-%s", shown.ID, filepath.Base(cmp.Or(f.Name, shown.JobName+".yaml"))), "text/plain; charset=utf-8")
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
	file := attach(v.visit, fmt.Sprintf("skipped-item-%d.txt", s.ID), "text/plain; charset=utf-8")
	file.text(v.masked(itemOf(s)))
	return file.end(nil)
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
