package csv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// NewWriter returns a writer of items of the type use.In. The file belongs to
// use.Attempt (rule C15b).
func NewWriter(cfg WriterConfig, use registry.BuildContext) (item.Writer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	enc, err := filestream.NewEncoder(cfg.Encoding)
	if err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	comma, err := delimiter(cfg.Delimiter)
	if err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	w := &writer{
		cfg: cfg, comma: comma, item: use.In.Schema(), enc: enc,
		out: filestream.NewOutput(filestream.OutputConfig{
			Path: cfg.Path, Compression: cfg.Compression, Form: formOf(cfg, comma, use.In.Schema()), Mode: use.FileMode, Attempt: use.Attempt,
		}),
		end: "\n",
	}
	if cfg.LineEnd == "crlf" {
		w.end = "\r\n"
	}
	w.special['"'], w.special['\n'], w.special['\r'] = true, true, true
	if comma < utf8.RuneSelf {
		w.special[comma] = true
	}
	return use.In.ToRecords(w)
}

// writer is the item.RecordWriter.
type writer struct {
	cfg   WriterConfig
	comma rune
	// special are the bytes that a field has in quotes only.
	special [256]bool
	end     string
	item    *row.Schema // of the item type
	enc     *filestream.Encoder
	out     *filestream.Output

	begun   bool        // what stands before the first record is written
	columns []string    // that this attempt writes; nil if they are not known (open schemas)
	schema  *row.Schema // whose columns were compared last
	field   []byte
	line    []byte
	buf     []byte
}

// Open starts the file, or takes up what is committed.
func (w *writer) Open(ctx context.Context, at item.Position) error {
	return w.start(at, func(at *filestream.OutputPosition) error { return w.out.Open(ctx, at) })
}

// Rewind forgets what was written since at (item.Rewinder).
func (w *writer) Rewind(_ context.Context, at item.Position) error {
	return w.start(at, w.out.Rewind)
}

func (w *writer) start(at item.Position, place func(*filestream.OutputPosition) error) error {
	var pos *filestream.OutputPosition // the writer's item.Position
	if at != nil {
		if err := json.Unmarshal(at, &pos); err != nil {
			return fmt.Errorf("csv: cannot restart: its position is not readable: %w", err)
		}
	}
	if err := place(pos); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	w.begun, w.schema = pos != nil && pos.Offset > 0 || w.out.Finished(), nil
	switch {
	case !w.item.IsOpen():
		w.columns = columnsOf(w.item)
	case !w.begun:
		w.columns = nil
	}
	if w.begun || w.item.IsOpen() {
		return nil
	}
	return w.begin(w.item)
}

// begin writes what stands before the first record.
func (w *writer) begin(schema *row.Schema) error {
	columns := columnsOf(schema)
	w.buf = append(w.buf[:0], w.enc.BOM()...)
	if w.cfg.Header {
		w.line = w.line[:0]
		for i, name := range columns {
			w.appendField(i, len(columns), []byte(name))
		}
		if err := w.endRecord(); err != nil {
			return fmt.Errorf("csv: the header: %w", err)
		}
	}
	if _, err := w.out.Write(w.buf); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	w.begun, w.columns, w.schema = true, columns, schema
	return w.declare(schema)
}

// declare makes the columns a part of the file's form.
func (w *writer) declare(schema *row.Schema) error {
	if err := w.out.Declare(formColumns, columnsText(schema, w.cfg.Nulls)); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	return nil
}

func columnsOf(schema *row.Schema) []string {
	columns := make([]string, schema.Len())
	for i := range columns {
		columns[i] = schema.Field(i).Source()
	}
	return columns
}

// WriteRecords appends the records. All of them are encoded first: one that
// cannot be leaves the file as it was.
func (w *writer) WriteRecords(_ context.Context, schema *row.Schema, records [][]row.Value) error {
	if schema != w.schema {
		if err := w.use(schema); err != nil {
			return err
		}
	}
	w.buf = w.buf[:0]
	for _, record := range records {
		w.line = w.line[:0]
		for i, v := range record {
			f := schema.Field(i)
			if v.IsNull() && f.Nulls == nil {
				w.field = append(w.field[:0], w.cfg.Nulls...)
			} else {
				if err := v.Finite(); err != nil { // the reader would refuse its text
					return exception.InvalidItem("csv", exception.ClassInvalidItem, fmt.Errorf("field %s: %w", f.Name, err))
				}
				w.field = f.AppendText(w.field[:0], v)
			}
			w.appendField(i, len(record), w.field)
		}
		if err := w.endRecord(); err != nil {
			return exception.InvalidItem("csv", exception.ClassInvalidItem, fmt.Errorf("record %.80q: %w", w.line, err))
		}
	}
	if _, err := w.out.Write(w.buf); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	return nil
}

// use checks that records of the schema fit the file's columns.
func (w *writer) use(schema *row.Schema) error {
	switch columns := columnsOf(schema); {
	case !w.begun:
		if err := w.begin(schema); err != nil {
			return err
		}
	case w.columns == nil: // an earlier attempt began the file
		if err := w.declare(schema); err != nil {
			return err
		}
		w.columns = columns
	case !slices.Equal(w.columns, columns):
		return fmt.Errorf("csv: the file has the columns %s, but the item has %s", strings.Join(w.columns, ", "), strings.Join(columns, ", "))
	}
	w.schema = schema
	return nil
}

func (w *writer) appendField(i, n int, text []byte) {
	if i > 0 {
		w.line = utf8.AppendRune(w.line, w.comma)
	}
	if w.cfg.Quote != "all" && !w.needsQuotes(n, text) {
		w.line = append(w.line, text...)
		return
	}
	w.line = append(w.line, '"')
	for {
		q := bytes.IndexByte(text, '"')
		if q < 0 {
			break
		}
		w.line = append(append(w.line, text[:q+1]...), '"')
		text = text[q+1:]
	}
	w.line = append(append(w.line, text...), '"')
}

// needsQuotes reports whether the field would be read differently without.
func (w *writer) needsQuotes(n int, text []byte) bool {
	if len(text) == 0 {
		return n == 1 // an empty line is not a record
	}
	if text[0] == ' ' || text[0] == '\t' || text[len(text)-1] == ' ' {
		return true
	}
	for _, c := range text {
		if w.special[c] {
			return true
		}
	}
	return w.comma >= utf8.RuneSelf && bytes.ContainsRune(text, w.comma)
}

func (w *writer) endRecord() error {
	w.line = append(w.line, w.end...)
	encoded, err := w.enc.Encode(w.line)
	if err != nil {
		return err
	}
	w.buf = append(w.buf, encoded...)
	return nil
}

// Prepare makes the chunk survive a crash.
func (w *writer) Prepare(context.Context) error {
	if err := w.out.Sync(); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	return nil
}

// Position returns the end of the file, with its form.
func (w *writer) Position() (item.Position, error) { return json.Marshal(w.out.Position()) }

// Release removes what earlier attempts left (item.Releaser).
func (w *writer) Release(context.Context) error {
	if err := w.out.Release(); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	return nil
}

// Finish renames the file into view.
func (w *writer) Finish(context.Context) error {
	if err := w.out.Finish(); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	return nil
}

// Close closes the file.
func (w *writer) Close(context.Context) error { return w.out.Close() }
