package csv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func recordReader(cfg readerConfig, itemType item.Type) (*reader, item.Type, error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, fmt.Errorf("csv: %w", err)
	}
	if itemType == nil {
		open, err := row.Open()
		if err != nil {
			return nil, nil, err
		}
		itemType = item.RowOf("", open)
	}
	if cfg.MaxLine == 0 {
		cfg.MaxLine = defaultMaxLine
	}
	quote, err := readerQuote(cfg.Quote)
	if err != nil {
		return nil, nil, fmt.Errorf("csv: %w", err)
	}
	escape, err := escapeOf(cfg.Escape, quote)
	if err != nil {
		return nil, nil, fmt.Errorf("csv: %w", err)
	}
	r := &reader{
		Confined: filestream.Confined{By: dividedBy(&cfg)},
		cfg:      cfg, want: itemType.Schema(), schema: itemType.Schema(),
		csv: scanner{comment: []byte(cfg.Comment), lazy: cfg.LazyQuotes, quote: quote, escape: escape},
	}
	r.useDelimiter("")
	return r, itemType, nil
}

type reader struct {
	cfg    readerConfig
	want   *row.Schema
	schema *row.Schema

	columns []string
	index   []int
	width   int // 0 means unknown; at least as many as index needs
	// for texts without and with quotes
	bare, quoted []row.Field
	isText       []bool // every text except an empty one is a value

	filestream.Confined
	in  *filestream.Input
	csv scanner
	cr  bool

	// next is the offset of the next record, lines those before it.
	next  int64
	lines int64
	line  int64
	// next and lines before the last record; lost is the last line that was given up
	from, fromLines int64
	lost            *item.RawText
	dead            error

	accept  bool
	sep     string
	footer  int
	context func() *core.ExecutionContext
}

type position struct {
	filestream.InputPosition
	Lines   int64    `json:"lines"`
	CR      bool     `json:"cr,omitempty"`
	Sep     string   `json:"sep,omitempty"`
	Columns []string `json:"columns,omitempty"`
	Width   int      `json:"width,omitempty"`
}

// A step has 8 KB for its reader and its writers together (rule D4).
const maxColumnBytes = 2 << 10

// Schema is complete after Open.
func (r *reader) Schema() *row.Schema { return r.schema }

func (r *reader) Meta() item.Meta { return item.Meta{Path: r.cfg.Path, Line: r.line} }

func (r *reader) AcceptChanges() { r.accept = true }

func (r *reader) Open(ctx context.Context, at item.Position) error {
	if err := r.open(ctx, at); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	return nil
}

func (r *reader) open(ctx context.Context, at item.Position) error {
	var pos *position
	at = r.Start(at)
	r.columns, r.width = nil, 0
	if at != nil {
		pos = &position{}
		if err := json.Unmarshal(at, pos); err != nil {
			return fmt.Errorf("cannot restart: the stored position is unreadable: %w", err)
		}
		r.columns, r.width = pos.Columns, pos.Width
	}
	if pos != nil && (r.columns != nil || r.cfg.Columns > 0 || !r.needsHead() && r.width > 0) {
		if err := r.openAt(ctx, pos); err != nil {
			return err
		}
		if err := r.bind(); err != nil {
			return err
		}
		return r.checkUnknown()
	}
	if err := r.openAt(ctx, nil); err != nil {
		return err
	}
	if err := r.readHead(ctx); err != nil {
		return err
	}
	if err := r.bind(); err != nil {
		return err
	}
	if err := r.checkUnknown(); err != nil || pos == nil {
		return err
	}
	if err := r.learnWidth(ctx, pos.Offset); err != nil {
		return err
	}
	if err := r.in.Close(); err != nil {
		return err
	}
	return r.openAt(ctx, pos)
}

func (r *reader) needsHead() bool { return r.cfg.hasHeader() || r.want.IsOpen() }

func (r *reader) openAt(ctx context.Context, pos *position) error {
	cfg := filestream.InputConfig{
		Path: r.cfg.Path, Compression: r.cfg.Compression, Member: r.cfg.Member, Encoding: r.cfg.Encoding, Max: int64(r.cfg.MaxLine) * int64(1+r.cfg.FooterLines),
		Accept: r.accept, Lines: true, Divided: r.Divided(),
	}
	var at *filestream.InputPosition
	if pos != nil {
		at = &pos.InputPosition
	}
	in, err := filestream.OpenInput(ctx, cfg, at)
	if err != nil {
		r.in = nil
		return err
	}
	r.in, r.footer = in, r.cfg.FooterLines
	if pos != nil {
		r.cr = pos.CR
	} else if r.cr, err = in.EndsLinesWithCR(ctx, r.csv.quote); err != nil {
		return err
	}
	r.csv.cr = r.cr
	if r.cr {
		in.EndLinesWithCR()
	}
	if pos == nil {
		return r.preamble(ctx)
	}
	r.useDelimiter(pos.Sep)
	r.rewindTo(pos.Offset, pos.Lines)
	return nil
}

func (r *reader) readHead(ctx context.Context) error {
	if !r.needsHead() || r.cfg.Columns > 0 {
		return nil
	}
	text, err := r.record(ctx)
	switch {
	case errors.Is(err, io.EOF) && !r.cfg.hasHeader():
		r.columns = []string{}
		return nil
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s is empty: its first line must name the columns (or set header: false)", r.cfg.Path)
	case err != nil:
		return exception.Fatal("the header is unreadable", err)
	}
	r.columns = columnNames(len(r.csv.fields))
	if !r.cfg.hasHeader() {
		r.rewindTo(r.from, r.fromLines) // blank lines before it may have gone
		return nil
	}
	for i, f := range r.csv.fields {
		name := text[f.from:f.to]
		if r.cfg.Trim {
			name = strings.TrimSpace(name)
		}
		if !utf8.ValidString(name) {
			return fmt.Errorf("%s: the header's column %d, %.60q, %s", r.cfg.Path, i+1, name, r.in.NotValid())
		}
		r.columns[i] = strings.Clone(name)
	}
	return nil
}

func (r *reader) rewindTo(offset, lines int64) {
	r.in.Rewind(offset)
	r.in.Keep(offset)
	r.next, r.lines = offset, lines
}

// ReadRecord reads the next record. One that does not fit is an item.ConsumedError.
func (r *reader) ReadRecord(ctx context.Context, dst []row.Value) error {
	record, err := r.record(ctx)
	if err != nil {
		return err
	}
	if err := r.checkWidth(len(r.csv.fields)); err != nil {
		return err
	}
	valid := utf8.ValidString(record)
	for i, column := range r.index {
		f := &r.bare[i]
		if uint(column) >= uint(len(r.csv.fields)) {
			if dst[i], err = r.absent(f, column); err != nil {
				return err
			}
			continue
		}
		in := &r.csv.fields[column]
		if in.quoted {
			f = &r.quoted[i]
		}
		text := record[in.from:in.to]
		if r.cfg.Trim {
			text = strings.TrimSpace(text)
		}
		if !valid && !utf8.ValidString(text) {
			return r.invalid(inColumn(r, f.Name, column, fmt.Errorf("field %s: %s %s", f.Name, f.Quoted(fmt.Sprintf("%.60q", text)), r.in.NotValid())))
		}
		if r.isText[i] && text != "" {
			dst[i] = row.StringValue(text)
		} else if dst[i], err = f.Parse(text); err != nil {
			return item.Consumed(r.Meta(), inColumn(r, f.Name, column, err))
		}
	}
	return nil
}

func (r *reader) absent(f *row.Field, column int) (row.Value, error) {
	if column < 0 {
		return f.Default, nil
	}
	v, err := f.Missing()
	if err != nil {
		return v, item.Consumed(r.Meta(), inColumn(r, f.Name, column, fmt.Errorf("the record has %d fields, not %d: %w", len(r.csv.fields), r.width, err)))
	}
	return v, nil
}

func (r *reader) checkWidth(n int) error {
	switch {
	case n == r.width, n < r.width && r.cfg.Short == shortNull, n > r.width && r.width > 0 && r.cfg.Long == longIgnore,
		r.width == 0 && n < len(r.index) && r.cfg.Short == shortNull:
		return nil
	case r.width == 0 && n < len(r.index):
		return r.invalid(inColumn(r, fieldOf(r, n), n, fmt.Errorf("the record has %d fields, at least %d are needed", n, len(r.index))))
	case r.width == 0:
		r.setWidth(n)
		return nil
	}
	err := fmt.Errorf("the record has %d fields, not %d", n, r.width)
	if !r.cfg.hasHeader() && r.cfg.Columns == 0 {
		err = fmt.Errorf("%w like the first one (see the key columns)", err)
	}
	return r.invalid(wrongNumber(r, r.width, fieldOf(r, n), err))
}

func (r *reader) invalid(err error) error {
	return item.Consumed(r.Meta(), exception.InvalidItem("", exception.ClassParse, err))
}

func (r *reader) record(ctx context.Context) (string, error) {
	if r.dead != nil {
		return "", r.dead
	}
	if r.Ends(r.next) {
		return "", io.EOF
	}
	r.from, r.fromLines, r.lost = r.next, r.lines, nil
	length, err := r.scan(ctx)
	if err != nil || length > int64(r.cfg.MaxLine) {
		return r.refused(ctx, length, err)
	}
	r.line = r.lines + int64(r.csv.before) + 1
	r.lines = r.line + int64(r.csv.lines) - 1
	r.consumed(r.next + length)
	return string(r.csv.content), nil
}

// scan reads twice as much each time while the record is incomplete, so that a long record is not parsed
// again for each buffer. length includes the empty lines and comments before the record.
func (r *reader) scan(ctx context.Context) (length int64, err error) {
	for {
		text := r.in.Buffered(r.next)
		records := text
		if r.footer > 0 {
			records = text[:r.footerStart(text, errors.Is(err, io.EOF))]
		}
		end, short := r.csv.scan(records, errors.Is(err, io.EOF))
		if !errors.Is(short, errShort) {
			return int64(end), short
		}
		if err != nil {
			return int64(end), err
		}
		for twice := 2 * len(text); err == nil && len(r.in.Buffered(r.next)) <= twice; {
			err = r.in.More(ctx)
		}
	}
}

func (r *reader) consumed(end int64) {
	r.next = end
	r.in.Keep(end)
}

func (r *reader) IndependentOf(string) bool { return true }

// Position returns where the next record starts.
func (r *reader) Position() (item.Position, error) {
	if r.in == nil {
		return nil, errors.New("csv: the reader is not open")
	}
	return positionAt(r, filestream.Cut{Offset: r.next, Lines: r.lines}, r.width)
}

func positionAt(r *reader, at filestream.Cut, width int) (item.Position, error) {
	pos := position{InputPosition: r.in.Position(at.Offset), Lines: at.Lines, CR: r.cr, Sep: r.sep}
	switch {
	case !r.cfg.hasHeader():
		pos.Width = width
	case fitsPosition(r.columns): // otherwise the header is read again
		pos.Columns = r.columns
	}
	return json.Marshal(pos)
}

func fitsPosition(columns []string) bool {
	size := 0
	for _, name := range columns {
		size += len(name) + 3
	}
	return size <= maxColumnBytes
}

func (r *reader) Close(context.Context) error {
	if r.in == nil {
		return nil
	}
	in := r.in
	r.in, r.dead = nil, errors.New("csv: the reader is closed")
	return in.Close()
}

func columnNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("column%d", i+1)
	}
	return names
}
