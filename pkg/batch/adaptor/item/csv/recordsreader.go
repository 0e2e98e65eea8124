package csv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/recordtypes"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// recordsReader reads a file with several record types (rule C15p).
type recordsReader struct {
	*reader
	of     *types
	state  *recordtypes.State
	widths map[string]int // of the types with a number of fields that the first record decides
	text   string
	single bool
}

type recordsPosition struct {
	position
	recordtypes.Position
	Widths map[string]int `json:"widths,omitempty"`
}

func newRecordsReader(r *reader, of *types) *recordsReader {
	r.cfg.Header = headerNone
	return &recordsReader{reader: r, of: of, state: of.plan.Start()}
}

func (r *recordsReader) Open(ctx context.Context, at item.Position) error {
	if err := r.openRecords(ctx, at); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	return nil
}

func (r *recordsReader) openRecords(ctx context.Context, at item.Position) error {
	r.single, r.state, r.widths = false, r.of.plan.Start(), map[string]int{}
	if err := r.bindTypes(); err != nil {
		return err
	}
	r.csv.blanks = false // an empty line has no type
	if at == nil {
		return r.openAt(ctx, nil)
	}
	var pos recordsPosition
	if err := json.Unmarshal(at, &pos); err != nil {
		return fmt.Errorf("cannot restart: the stored position is unreadable: %w", err)
	}
	maps.Copy(r.widths, pos.Widths)
	if err := r.openAt(ctx, &pos.position); err != nil {
		return err
	}
	var err error
	if r.state, err = r.of.plan.Restore(pos.Position, r.headOf); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", r.cfg.Path, err), r.Close(ctx))
	}
	return nil
}

// An empty line is not a record of any type.
func (r *recordsReader) bindTypes() error {
	err := r.bind()
	r.csv.blanks = false
	return err
}

func (r *recordsReader) headOf(_ *recordtypes.Type, raw []byte) (recordtypes.Record, error) {
	if _, err := r.csv.scan(raw, true); err != nil {
		return nil, fmt.Errorf("cannot restart: a stored header is unreadable: %w", err)
	}
	r.text = string(r.csv.content)
	return headRecord{r, raw}, nil
}

type headRecord struct {
	*recordsReader
	raw []byte
}

func (h headRecord) Column(t *recordtypes.Type, column int) (row.Value, error) {
	return h.parse(t.Fields[column], h.of.columns[t.Number()][column])
}

func (h headRecord) Raw(*recordtypes.Type) []byte { return h.raw }

// One that does not fit is an item.ConsumedError.
func (r *recordsReader) ReadRecord(ctx context.Context, dst []row.Value) error {
	for {
		t, err := r.take(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return r.end(err)
		case item.IsConsumed(err):
			if lost := r.state.Lost(); lost != nil {
				return r.broken(r.line, lost)
			}
			return err
		case err != nil:
			return err
		case t.Role == recordtypes.Detail:
			return r.detail(ctx, t, dst)
		case r.single:
			return r.invalid(fmt.Errorf("the record is a %s, not an item", t.Role))
		}
		if err := r.follow(t); err != nil {
			return err
		}
	}
}

func (r *recordsReader) take(ctx context.Context) (*recordtypes.Type, error) {
	text, err := r.record(ctx)
	if err != nil {
		return nil, err
	}
	r.text = text
	t := r.typeOf()
	if t == nil {
		name := ""
		if len(r.csv.fields) > r.of.typeAt {
			name = r.text[r.csv.fields[r.of.typeAt].from:r.csv.fields[r.of.typeAt].to]
		}
		return nil, r.invalid(fmt.Errorf(`the record is of the type %.60q, but records has %s; "*": {as: ignore} skips all others`, name, r.of.plan.Names()))
	}
	return t, nil
}

func (r *recordsReader) typeOf() *recordtypes.Type {
	if len(r.csv.fields) <= r.of.typeAt {
		return r.of.plan.Find(recordtypes.Any)
	}
	in := r.csv.fields[r.of.typeAt]
	return r.of.plan.Find(strings.TrimSpace(r.text[in.from:in.to]))
}

func (r *recordsReader) end(eof error) error {
	if err := r.state.End(); err != nil {
		return r.broken(r.lines+1, err)
	}
	return eof
}

func (r *recordsReader) broken(line int64, err error) error {
	r.dead = fmt.Errorf("csv: %s:%d: %w", r.cfg.Path, line, err)
	return r.dead
}

func (r *recordsReader) detail(ctx context.Context, t *recordtypes.Type, dst []row.Value) error {
	if err := r.state.Count(t, r); err != nil {
		return r.broken(r.line, err)
	}
	if err := r.checkFields(t); err != nil {
		return r.invalid(err)
	}
	if err := r.state.Fill(t, r, dst); err != nil {
		return item.Consumed(r.Meta(), err)
	}
	return r.settle(ctx)
}

func (r *recordsReader) checkFields(t *recordtypes.Type) error {
	want, n := r.of.kinds[t.Number()].Fields, len(r.csv.fields)
	if want == 0 && !r.single {
		first, known := r.widths[t.Name]
		if want = first; !known {
			for _, at := range r.of.columns[t.Number()] {
				if at >= n {
					return wrongNumber(r.reader, at+1, "", fmt.Errorf("the record has %d fields, at least %d are needed", n, at+1))
				}
			}
			r.widths[t.Name], want = n, n
		}
	}
	if want != 0 && n != want {
		return wrongNumber(r.reader, want, "", fmt.Errorf("the record has %d fields, not %d like others of the type %s", n, want, t.Name))
	}
	return nil
}

func (r *recordsReader) follow(t *recordtypes.Type) error {
	err := error(nil)
	switch t.Role {
	case recordtypes.Header:
		if err = r.checkFields(t); err == nil {
			err = r.state.Header(t, r, r.line)
		}
	case recordtypes.Trailer:
		if err = r.checkFields(t); err == nil {
			err = r.state.Trailer(t, r)
		}
	default:
	}
	if err != nil {
		return r.broken(r.line, err)
	}
	return nil
}

// settle reads the trailers after a detail, so that an incomplete file fails before its last item is
// returned. Errors are left to the next read.
func (r *recordsReader) settle(ctx context.Context) error {
	if !r.of.plan.HasTrailers() || r.single {
		return nil
	}
	defer func(line int64) { r.line = line }(r.line)
	for {
		length, err := r.scan(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return noEOF(r.end(err))
		case err != nil || length > int64(r.cfg.MaxLine):
			return nil //nolint:nilerr // the next read finds out
		}
		r.text = string(r.csv.content)
		t := r.typeOf()
		if t == nil || t.Role == recordtypes.Detail || t.Role == recordtypes.Header {
			return nil
		}
		if t, err = r.take(ctx); err != nil {
			return nil //nolint:nilerr // it was there: the next read finds out
		}
		if err := r.follow(t); err != nil {
			return err
		}
	}
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (r *recordsReader) Column(t *recordtypes.Type, column int) (row.Value, error) {
	return r.at(t.Fields[column], r.of.columns[t.Number()][column])
}

func (r *recordsReader) Sum(t *recordtypes.Type, sum int) (row.Value, error) {
	v, err := r.at(t.Sums[sum].Field, r.of.sums[t.Number()][sum])
	if err == nil && v.IsNull() {
		err = fmt.Errorf("in field %d: it is empty", r.of.sums[t.Number()][sum]+1)
	}
	return v, err
}

// Count implements recordtypes.Record.
func (r *recordsReader) Count(t *recordtypes.Type) (int64, error) {
	at := r.of.kinds[t.Number()].Count - 1
	if at >= len(r.csv.fields) {
		return 0, fmt.Errorf("in field %d (count): it has %d", at+1, len(r.csv.fields))
	}
	in := r.csv.fields[at]
	text := strings.TrimSpace(r.text[in.from:in.to])
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("in field %d (count): %.40q", at+1, text)
	}
	return n, nil
}

func (r *recordsReader) Raw(*recordtypes.Type) []byte { return []byte(r.reader.RawText().Text) }

func (r *recordsReader) at(field, column int) (row.Value, error) {
	v, err := r.parse(field, column)
	if err != nil {
		err = inColumn(r.reader, r.bare[field].Name, column, err)
	}
	return v, err
}

func (r *recordsReader) parse(field, column int) (row.Value, error) {
	f := &r.bare[field]
	if column >= len(r.csv.fields) {
		return row.Value{}, exception.InvalidItem("", exception.ClassParse, fmt.Errorf("field %s: the record has %d fields, at least %d are needed", f.Name, len(r.csv.fields), column+1))
	}
	in := r.csv.fields[column]
	if in.quoted {
		f = &r.quoted[field]
	}
	text := r.text[in.from:in.to]
	if r.cfg.Trim {
		text = strings.TrimSpace(text)
	}
	if !utf8.ValidString(text) {
		return row.Value{}, exception.InvalidItem("", exception.ClassParse, fmt.Errorf("field %s: %s %s", f.Name, f.Quoted(fmt.Sprintf("%.60q", text)), r.in.NotValid()))
	}
	return f.Parse(text)
}

// Position returns where the next record starts.
func (r *recordsReader) Position() (item.Position, error) {
	if r.in == nil {
		return nil, errors.New("csv: the reader is not open")
	}
	return json.Marshal(recordsPosition{
		position: position{InputPosition: r.in.Position(r.next), Lines: r.lines, CR: r.cr, Sep: r.sep},
		Position: r.state.Position(), Widths: r.widths,
	})
}

// the last record, with the headers above it
func (r *recordsReader) RawText() item.RawText {
	raw := r.reader.RawText()
	raw.Columns = nil
	raw.Heads = r.state.RawHeads(func(head []byte) string { return string(head) })
	return raw
}

func (r *recordsReader) OpenRaw(ctx context.Context, meta item.Meta, raw item.RawText) error {
	r.single = true
	heads := slices.Clone(raw.Heads)
	raw.Columns = nil
	if err := r.bindTypes(); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	if err := r.reader.OpenRaw(ctx, meta, raw); err != nil {
		return err
	}
	r.csv.blanks = false
	var err error
	if r.state, err = r.of.plan.RestoreRawHeads(heads, func(t *recordtypes.Type, text string) (recordtypes.Record, error) {
		return r.headOf(t, []byte(text))
	}); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	return nil
}
