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

// newWriter returns a writer of items of the type use.In. The file belongs to use.Attempt (rule C15b).
func newWriter(cfg writerConfig, use registry.BuildContext) (item.Writer, error) {
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
	quote, all, err := cfg.quote()
	if err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	escape, err := escapeOf(cfg.Escape, quote)
	if err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	appends, err := filestream.AppendTo(cfg.Append, cfg.Encoding, lineEnd(cfg))
	if err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	if appends != nil {
		appends.Ends = &filestream.Ends{LineEnd: lineEnd(cfg), Quote: quote, Escape: escape, Comma: comma}
	}
	w := &writer{
		cfg: cfg, item: use.In.Schema(),
		lines: encoded{form: &form{nulls: cfg.Nulls, quoteAll: all, quote: quote, escape: escape, comma: comma, end: "\n", enc: enc}},
		Publisher: filestream.NewPublisher("csv", filestream.OutputConfig{
			Path: cfg.Path, Compression: cfg.Compression, Append: appends, Together: cfg.Together, Form: formOf(cfg, comma, use.In.Schema()), Mode: use.FileMode, Attempt: use.Attempt,
		}),
	}
	f := w.lines.form
	f.end = lineEnd(cfg)
	f.special[quote], f.special['\n'], f.special['\r'] = true, true, true
	if f.wide = len(comma) > 1 && utf8.RuneCountInString(comma) == 1; !f.wide {
		for _, c := range []byte(comma) { // a field may end with the first character of several
			f.special[c] = true
		}
	}
	return use.In.ToRecords(w)
}

func lineEnd(cfg writerConfig) string {
	if cfg.LineEnd == "crlf" {
		return "\r\n"
	}
	return "\n"
}

type writer struct {
	filestream.Publisher
	cfg   writerConfig
	lines encoded
	item  *row.Schema

	begun   bool
	columns []string
	schema  *row.Schema
}

func (w *writer) Open(ctx context.Context, at item.Position) error {
	return w.start(at, func(at *filestream.OutputPosition) error { return w.Out.Open(ctx, at) })
}

// Joins implements itemextra.Joiner.
func (w *writer) Joins() bool { return w.cfg.Together }

// JoinParts implements itemextra.Joiner.
func (w *writer) JoinParts(ctx context.Context, at item.Position, parts []item.Position) error {
	joined, err := filestream.JoinedAt(parts)
	if err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	return w.start(at, func(at *filestream.OutputPosition) error { return filestream.Join(ctx, w.Out, at, joined) })
}

func (w *writer) Rewind(_ context.Context, at item.Position) error {
	return w.start(at, w.Out.Rewind)
}

func (w *writer) start(at item.Position, place func(*filestream.OutputPosition) error) error {
	var pos *filestream.OutputPosition
	if at != nil {
		if err := json.Unmarshal(at, &pos); err != nil {
			return fmt.Errorf("csv: cannot restart: the stored position is unreadable: %w", err)
		}
	}
	if err := place(pos); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	w.begun, w.schema = w.Out.Begun(), nil
	switch {
	case !w.item.IsOpen():
		w.columns = columnsOf(w.item)
	case !w.begun:
		w.columns = nil
	}
	switch {
	case w.item.IsOpen():
		return nil
	case w.begun:
		return w.checkHeader(w.columns)
	}
	return w.begin(w.item)
}

func (w *writer) checkHeader(columns []string) error {
	head := w.Out.Appended()
	if !w.cfg.Header || head == nil {
		return nil
	}
	want := w.lines.appendHeader(nil, columns)
	if rest, is := bytes.CutPrefix(head, want); is && (len(rest) == 0 || rest[0] == '\n' || rest[0] == '\r') {
		return nil
	}
	first, _, _ := bytes.Cut(head, []byte("\n"))
	return exception.Fatal("", fmt.Errorf("csv: cannot append to %s: its header is %.200q, but this step's header is %.200q", w.cfg.Path, bytes.TrimSuffix(first, []byte("\r")), want))
}

func (w *writer) begin(schema *row.Schema) error {
	columns := columnsOf(schema)
	l := &w.lines
	l.buf = append(l.buf[:0], l.enc.BOM()...)
	if w.cfg.Header {
		start := len(l.buf)
		l.buf = l.appendHeader(l.buf, columns)
		if err := l.endRecord(start); err != nil {
			return fmt.Errorf("csv: the header: %w", err)
		}
	}
	if _, err := w.Out.Write(l.buf); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	w.begun, w.columns, w.schema = true, columns, schema
	if err := filestream.EndHead(w.Out); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	return w.declare(schema)
}

func (l *encoded) appendHeader(buf []byte, columns []string) []byte {
	var marks [][]byte
	if len(columns) == 1 {
		marks = [][]byte{nil} // an empty line is not a header
	}
	for i, name := range columns {
		if i > 0 {
			buf = append(buf, l.comma...)
		}
		at := len(buf)
		buf = l.endField(append(buf, name...), at, marks)
	}
	return buf
}

func (w *writer) declare(schema *row.Schema) error {
	return w.Named(w.Out.Declare(formColumns, columnsText(schema, w.cfg.Nulls)))
}

func columnsOf(schema *row.Schema) []string {
	columns := make([]string, schema.Len())
	for i := range columns {
		columns[i] = schema.Field(i).Source()
	}
	return columns
}

// All records are encoded first: if one cannot be, the file stays unchanged.
func (w *writer) WriteRecords(_ context.Context, schema *row.Schema, records [][]row.Value) error {
	if schema != w.schema {
		if err := w.use(schema); err != nil {
			return err
		}
	}
	if err := w.lines.EncodeRecords(schema, records); err != nil {
		return err
	}
	return w.write(&w.lines)
}

func (w *writer) write(l *encoded) error {
	_, err := w.Out.Write(l.buf)
	return w.Named(err)
}

func (w *writer) NewEncoding() item.RecordEncoding { return &encoded{form: w.lines.form} }

func (w *writer) WriteEncoded(_ context.Context, of item.RecordEncoding) (bool, error) {
	l, ok := of.(*encoded)
	if !ok {
		return false, fmt.Errorf("csv: a %T is not an encoding of this writer", of)
	}
	if l.schema != w.schema {
		if err := w.use(l.schema); err != nil {
			return false, err
		}
	}
	return true, w.write(l)
}

func (w *writer) use(schema *row.Schema) error {
	switch columns := columnsOf(schema); {
	case !w.begun:
		if err := w.begin(schema); err != nil {
			return err
		}
	case w.columns == nil:
		if err := w.checkHeader(columns); err != nil {
			return err
		}
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

func (w *writer) Position() (item.Position, error) { return json.Marshal(w.Out.Position()) }
