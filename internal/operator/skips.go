package operator

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type skips struct {
	jobs    *jobs
	records interface {
		Judged(ctx context.Context, req ports.JudgedRequest) ([]ports.JudgedExecution, error)
		Executions(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecution, error)
		SkippedItems(ctx context.Context, filter ports.SkipFilter) ([]core.SkippedItem, error)
		SkippedItem(ctx context.Context, id int64) (*core.SkippedItem, error)
		WindowEnd(ctx context.Context, filter ports.SkipFilter) (int64, error)
	}
}

// A search reads this many items for a page.
const searchedSkips = 20_000

// SkipView is a skipped item, and a line of an export. Item is null unless
// wholly known; else Stored is the known part. An item that could not be read
// has its text in Raw, if its reader keeps one.
type SkipView struct {
	ID        int64               `json:"id"`
	Execution core.JobExecutionID `json:"execution"`
	Step      string              `json:"step"`
	Phase     core.Phase          `json:"phase"`
	Path      string              `json:"path,omitempty"`
	Line      int64               `json:"line,omitempty"`
	// Index is the element's number in an array, Row the row's, if it became
	// several.
	Index int64  `json:"index,omitempty"`
	Row   int64  `json:"row,omitempty"`
	Class string `json:"class"`
	Error string `json:"error"`
	Fault
	Item   json.RawMessage `json:"item"`
	Stored json.RawMessage `json:"stored,omitempty"`
	SHA256 string          `json:"sha256,omitempty"` // of an item or a text that was truncated
	// Raw is the text of an item that could not be read. Offset and Length are
	// bytes in the file.
	Raw     *string  `json:"raw,omitempty"`
	Columns []string `json:"columns,omitempty"`
	Offset  *int64   `json:"offset,omitempty"`
	Length  *int64   `json:"length,omitempty"`
	// The rest is for SplitSkip only.
	Fields     []RawField `json:"fields,omitempty" doc:"Of one item: its text, split as its reader does by the job definition of its execution"`
	MoreFields bool       `json:"more_fields,omitempty" doc:"Fields after the first 1,000, or after the stored part of a text that was cut, are left out"`
	NoFields   string     `json:"no_fields,omitempty" doc:"Of one item: why its text is not split"`
	// RedrivenBy is the execution that later processed it, or 0.
	RedrivenBy core.JobExecutionID `json:"redriven_by,omitempty"`
	// LeftIn is the redrive that has the item again; for Skip and SplitSkip only.
	LeftIn    core.JobExecutionID `json:"left_in,omitempty"`
	CreatedAt time.Time           `json:"created,omitzero"`
}

// Fault is where the mistake in an item is, as far as its reader, processor or
// writer says.
type Fault struct {
	Field  string `json:"field,omitempty" doc:"Name of the field with the mistake"`
	Column int    `json:"column,omitempty" doc:"Its column in raw, counted from 1"`
	From   *int   `json:"from,omitempty" doc:"The first character of the mistake in raw, counted from 0"`
	To     *int   `json:"to,omitempty" doc:"The character after the mistake; the same as from if something is missing there"`
}

func faultOf(p fault.Place) Fault {
	f := Fault{Field: p.Field, Column: p.Column}
	if p.To > 0 {
		f.From, f.To = &p.From, &p.To
	}
	return f
}

func skipView(s *core.SkippedItem) SkipView {
	view := SkipView{Fault: faultOf(s.Fault),
		ID: s.ID, Execution: s.JobExecutionID, Step: s.Step, Phase: s.Phase, Path: s.Meta.Path, Line: s.Meta.Line, Index: s.Meta.Index, Row: s.Meta.Row,
		Class: s.Class, Error: withUnreadable(s.Error, s.Unreadable), SHA256: s.SHA256, RedrivenBy: s.RedrivenBy, CreatedAt: utc(s.CreatedAt),
	}
	view.Item, view.Raw = s.Whole()
	if s.Raw != nil {
		raw := *s.Raw
		view.Columns, view.Offset, view.Length = raw.Columns, &raw.Offset, &raw.Length
	}
	switch part := s.Part(); {
	case part == "":
	case s.Raw == nil:
		view.Stored = json.RawMessage(part)
	default:
		if text, err := json.Marshal(part); err == nil { // a text always has a JSON form
			view.Stored = text
		}
	}
	return view
}

// SkipsRequest selects skipped items of an execution; zero fields select all.
type SkipsRequest struct {
	Execution core.JobExecutionID `json:"execution"`
	Step      string              `json:"step,omitempty"`
	Phase     core.Phase          `json:"phase,omitempty"`
	// Index counts from 1.
	Index int64 `json:"index,omitempty"`
	// Left selects items not redriven.
	Left bool `json:"left,omitempty"`
	// Class selects errors of this class, Text those whose error or item has it,
	// in upper or lower case. A page of such a search reads 20,000 items: it may
	// be empty and have a next one.
	Class string `json:"class,omitempty"`
	Text  string `json:"text,omitempty"`
	// After selects greater IDs: the key of the next page.
	After int64 `json:"after,omitempty"`
	// Limit: 0 means 50.
	Limit int `json:"limit,omitempty"`
}

func (r SkipsRequest) filter() (ports.SkipFilter, error) {
	filter := ports.SkipFilter{Execution: r.Execution, Step: r.Step, Phase: r.Phase, Index: r.Index, Left: r.Left, After: r.After, Class: r.Class, Text: r.Text}
	if r.Class != "" || r.Text != "" {
		filter.Window = searchedSkips
	}
	switch r.Phase {
	case "", core.PhaseRead, core.PhaseProcess, core.PhaseWrite:
	default:
		return filter, &RequestError{Field: "phase", Value: string(r.Phase), Reason: "no such phase",
			Allowed: []string{string(core.PhaseRead), string(core.PhaseProcess), string(core.PhaseWrite)}}
	}
	var err error
	filter.Limit, err = askLimit(r.Limit)
	return filter, err
}

// SkipPage is a page in the order of storage.
type SkipPage struct {
	Items []SkipView `json:"items"`
	// Next: 0 means the last page.
	Next int64 `json:"next,omitempty"`
	// Elsewhere are other attempts with such items, newest first, if this one
	// has none.
	Elsewhere []core.JobExecutionID `json:"elsewhere,omitempty"`
}

// Skips lists an execution's skipped items. It returns core.ErrNotFound, or a
// *RequestError for an invalid request.
func (s *skips) Skips(ctx context.Context, req SkipsRequest) (SkipPage, error) {
	filter, err := req.filter()
	if err != nil {
		return SkipPage{}, err
	}
	exec, err := seen(ctx, s.records, req.Execution)
	if err != nil {
		return SkipPage{}, err
	}
	list := fmt.Sprintf("list the skipped items of execution %d", req.Execution)
	found, err := s.records.SkippedItems(ctx, filter)
	if err != nil {
		return SkipPage{}, fmt.Errorf("%s: %w", list, err)
	}
	page := SkipPage{Items: []SkipView{}}
	found, more := cutPage(found, filter.Limit)
	for i := range found {
		page.Items = append(page.Items, skipView(&found[i]))
	}
	switch {
	case more:
		page.Next = found[len(found)-1].ID
	case filter.Window > 0:
		if page.Next, err = s.records.WindowEnd(ctx, filter); err != nil {
			return SkipPage{}, fmt.Errorf("%s: %w", list, err)
		}
	}
	if len(found) == 0 && req.After == 0 && filter.Window == 0 {
		page.Elsewhere, err = s.skipsOfOthers(ctx, exec, filter)
	}
	return page, err
}

func (s *skips) skipsOfOthers(ctx context.Context, exec *core.JobExecution, filter ports.SkipFilter) (ids []core.JobExecutionID, err error) {
	attempts, err := s.records.Executions(ctx, ports.ExecutionFilter{Instance: exec.InstanceID})
	if err != nil {
		return nil, fmt.Errorf("list the attempts of instance %d: %w", exec.InstanceID, err)
	}
	filter.Limit = 1
	for i := range attempts {
		if attempts[i].ID == exec.ID {
			continue
		}
		filter.Execution = attempts[i].ID
		items, err := s.records.SkippedItems(ctx, filter)
		if err != nil {
			return nil, fmt.Errorf("list the skipped items of execution %d: %w", filter.Execution, err)
		}
		if len(items) > 0 {
			ids = append(ids, filter.Execution)
		}
	}
	return ids, nil
}

// Skip returns one by its number, or core.ErrNotFound.
func (s *skips) Skip(ctx context.Context, id int64) (*SkipView, error) {
	view, _, _, err := s.skip(ctx, id)
	return view, err
}

func (s *skips) skip(ctx context.Context, id int64) (*SkipView, *core.SkippedItem, *core.JobExecution, error) {
	item, err := s.records.SkippedItem(ctx, id)
	if err != nil {
		return nil, nil, nil, err
	}
	exec, err := seen(ctx, s.records, item.JobExecutionID)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("the execution of skipped item %d: %w", id, err)
	}
	view := skipView(item)
	view.LeftIn = exec.RedriveOf
	return &view, item, exec, nil
}

const exportPage = 500

// ExportSkips writes the items not redriven to w, one JSON object per line, and
// returns their number. It ignores After and Limit. It may return
// core.ErrNotFound.
func (s *skips) ExportSkips(ctx context.Context, req SkipsRequest, w io.Writer) (n int, err error) {
	req.Left, req.After, req.Limit = true, 0, 0
	filter, err := req.filter()
	if err != nil {
		return 0, err
	}
	if _, err := seen(ctx, s.records, req.Execution); err != nil {
		return 0, err
	}
	filter.Limit, filter.Window = exportPage, 0
	buffered := bufio.NewWriter(w)
	for {
		page, err := s.records.SkippedItems(ctx, filter)
		if err != nil {
			return n, fmt.Errorf("list the skipped items of execution %d: %w", req.Execution, err)
		}
		views := make([]SkipView, len(page))
		for i := range page {
			views[i] = skipView(&page[i])
		}
		if err := WriteExport(buffered, views); err != nil {
			return n, err
		}
		n += len(page)
		if len(page) < filter.Limit {
			break
		}
		filter.After = page[len(page)-1].ID
	}
	if err := buffered.Flush(); err != nil {
		return n, fmt.Errorf("write the skipped items: %w", err)
	}
	return n, nil
}

// WriteExport writes items as lines of an export.
func WriteExport(w io.Writer, items []SkipView) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // people read the items
	for i := range items {
		if err := encoder.Encode(items[i]); err != nil {
			return fmt.Errorf("write skipped item %d: %w", items[i].ID, err)
		}
	}
	return nil
}

// ErrEmptyExport is the error for an export without an item.
var ErrEmptyExport = errors.New("no skipped item found")

// ReadExport reads an edited export, as for RedriveRequest.Edited. name is for
// messages. Errors are joined; ErrEmptyExport if there is no item.
func ReadExport(name string, export io.Reader) (map[int64]Edit, error) {
	items, at := map[int64]Edit{}, map[int64]int{}
	var errs []error
	lines := bufio.NewReader(export)
	for n := 1; ; n++ {
		line, end := lines.ReadBytes('\n')
		if end != nil && !errors.Is(end, io.EOF) {
			return nil, fmt.Errorf("%s: %w", name, end)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			r, err := readSkip(line)
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("%s:%d: %w", name, n, err))
			case at[r.ID] > 0:
				errs = append(errs, fmt.Errorf("%s:%d: skipped item %d is already in line %d", name, n, r.ID, at[r.ID]))
			default:
				items[r.ID], at[r.ID] = Edit{Item: r.Item, Raw: r.Raw}, n
			}
		}
		if end != nil {
			break
		}
	}
	if len(errs) == 0 && len(items) == 0 {
		return nil, fmt.Errorf("%s: %w", name, ErrEmptyExport)
	}
	return items, errors.Join(errs...)
}

func readSkip(line []byte) (SkipView, error) {
	var r SkipView
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("not a line of an export: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("not a line of an export: unexpected text after the JSON object")
	}
	if r.ID < 1 {
		return r, errors.New(`"id" is missing: the number of the skipped item`)
	}
	return r, nil
}
