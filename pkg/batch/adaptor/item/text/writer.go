package text

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/recordtypes"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// newFixedWriter returns a writer of items of the type use.In. The file belongs to use.Attempt (rule C15b).
func newFixedWriter(cfg fixedWriterConfig, use registry.BuildContext) (item.Writer, error) {
	err := cfg.Validate()
	var l *layout
	var total *sums
	var types *recordsWriter
	if err == nil {
		types, err = newRecordsWriter(&cfg, use.In)
	}
	if err == nil && types == nil {
		l, err = writerLayout(&cfg, use.In)
	}
	if err == nil && types == nil {
		total, err = newSums(cfg.Trailer, l, use.In.Schema())
	}
	if err != nil {
		return nil, fmt.Errorf("fixed: %w", err)
	}
	if types != nil {
		return newTypesWriter(cfg, types, use)
	}
	form := filestream.Form{"record": strconv.Quote(cfg.Record), "columns": l.String(), "header": strconv.Quote(cfg.Header)}
	if cfg.Length > 0 {
		form["length"] = strconv.Itoa(cfg.Length)
	}
	out := outConfig{
		name: "fixed", path: cfg.Path, compression: cfg.Compression, appends: cfg.Append, together: cfg.Together, encoding: cfg.Encoding, lineEnd: cfg.LineEnd, ending: ending{shape: l.shape},
		header: cfg.Header, put: l.appendRecord, sums: total, form: form,
	}
	if cfg.Trailer != nil {
		out.trailer = func(records int64) ([]byte, error) {
			text, err := trailerLine(cfg.Trailer, records)
			if err != nil {
				return nil, err
			}
			return total.appendTo(text, l.shape, use.In.Schema())
		}
	}
	return newOutput(out, use)
}

func newTypesWriter(cfg fixedWriterConfig, types *recordsWriter, use registry.BuildContext) (item.Writer, error) {
	form := filestream.Form{"header": strconv.Quote(cfg.Header)}
	if form["records"] = types.String(); len(form["records"]) > maxFormText {
		form["records"] = fmt.Sprintf("%.*s … (checksum %08x)", maxFormText, form["records"], crc32.ChecksumIEEE([]byte(form["records"])))
	}
	if cfg.Length > 0 {
		form["length"] = strconv.Itoa(cfg.Length)
	}
	return newOutput(outConfig{
		name: "fixed", path: cfg.Path, compression: cfg.Compression, encoding: cfg.Encoding, lineEnd: cfg.LineEnd, ending: ending{shape: types.shape},
		header: cfg.Header, put: types.detail, types: types, form: form,
	}, use)
}

// The position has limits (rule D4).
const maxFormText = 512

func trailerLine(t *trailerConfig, records int64) (string, error) {
	if t.Count == "" {
		return t.Begins, nil
	}
	at, err := spanOf(t.Count)
	if err != nil {
		return "", err
	}
	n := strconv.FormatInt(records, 10)
	if len(n) > at.width() {
		return "", fmt.Errorf("the file has %d records, but the trailer has room for %d digits (count at %s)", records, at.width(), at)
	}
	between := at.first - 1 - len([]rune(t.Begins))
	return t.Begins + strings.Repeat(" ", between) + strings.Repeat("0", at.width()-len(n)) + n, nil
}

func (l *layout) String() string {
	texts := make([]string, len(l.cells))
	for i, c := range l.cells {
		texts[i] = fmt.Sprintf("%s %s", c.name, c.span)
		if c.right {
			texts[i] += " right"
		}
		if c.decimals >= 0 {
			texts[i] += fmt.Sprintf(" decimals %d", c.decimals)
		}
		if c.form != formText {
			texts[i] += fmt.Sprintf(" %s sign %s", c.form, c.sign)
		}
		if c.pad != ' ' {
			texts[i] += " pad " + strconv.Quote(string(c.pad))
		}
	}
	return strings.Join(texts, ", ")
}

// a line without its end, or all bytes of the length
func (l *layout) appendRecord(dst []byte, schema *row.Schema, record []row.Value) ([]byte, error) {
	begin := len(dst)
	dst, err := l.appendMark(dst)
	if err != nil {
		return dst, err
	}
	at := l.spansOf(dst[begin:]) + 1
	for _, c := range l.cells {
		for ; at < c.first; at++ {
			dst = append(dst, l.blank())
		}
		if dst, err = c.append(dst, l.codec, schema.Field(c.field), record[c.field]); err != nil {
			return dst, err
		}
		at = c.last + 1
	}
	for ; at <= l.length; at++ {
		dst = append(dst, l.blank())
	}
	return dst, nil
}

func (l *layout) appendMark(dst []byte) ([]byte, error) {
	if l.codec == nil {
		return append(dst, l.mark...), nil
	}
	return l.codec.encode(dst, l.mark)
}

func (s shape) spansOf(text []byte) int {
	if s.codec == nil {
		return utf8.RuneCount(text)
	}
	return len(text)
}

func (s shape) blank() byte {
	if s.codec == nil {
		return ' '
	}
	return s.codec.blank
}

func (c cell) append(dst []byte, of *codec, f *row.Field, v row.Value) ([]byte, error) {
	if c.form != formText {
		return c.appendNumber(dst, of, f, v)
	}
	var short [64]byte
	text, err := c.textOf(short[:0], f, v)
	if err != nil {
		return dst, err
	}
	if v.IsNull() {
		c.pad = ' ' // zeros would be a value
	}
	if of != nil {
		return c.appendBytes(dst, of, string(text))
	}
	return c.appendTo(dst, string(text))
}

func appendText(dst []byte, f *row.Field, v row.Value) ([]byte, error) {
	if err := v.Finite(); err != nil { // the reader would refuse its text
		return dst, fmt.Errorf("field %s: %w", f.Name, err)
	}
	return f.AppendText(dst, v), nil
}

type outConfig struct {
	name, path, lineEnd string
	appends, together   bool
	compression         filestream.WriteCompression
	encoding            filestream.EncodingName
	header              string
	put                 func(dst []byte, schema *row.Schema, record []row.Value) ([]byte, error)
	// the last record of a file with that many records, or nil
	trailer func(records int64) ([]byte, error)
	sums    *sums
	types   *recordsWriter // instead of trailer and sums; nil means one type
	form    filestream.Form
	ending
}

type writer struct {
	filestream.Publisher
	cfg     outConfig
	schema  *row.Schema
	records int64
	own     encoded // for WriteRecords
	buf     []byte
}

type writerPosition struct {
	filestream.OutputPosition
	sumPosition
	Types   *recordtypes.Position `json:"types,omitempty"`
	Records int64                 `json:"records"`
}

func newOutput(cfg outConfig, use registry.BuildContext) (item.Writer, error) {
	encoding := cfg.encoding
	if cfg.codec != nil {
		encoding = ""
	}
	var err error
	if cfg.enc, err = filestream.NewEncoder(encoding); err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.name, err)
	}
	if cfg.end = "\n"; cfg.lineEnd == "crlf" {
		cfg.end = "\r\n"
	}
	w := &writer{cfg: cfg, schema: use.In.Schema()}
	w.own.cfg = &w.cfg
	appends, err := filestream.AppendTo(cfg.appends, encoding, cfg.end)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.name, err)
	}
	if appends != nil {
		appends.Record, appends.Ends = cfg.length, &filestream.Ends{LineEnd: cfg.end}
	}
	form := filestream.Form{
		filestream.FormWriter: cfg.name, "line_end": cmp.Or(cfg.lineEnd, "lf"), "encoding": filestream.CanonicalEncoding(cfg.encoding),
	}
	for name, value := range cfg.form {
		form[name] = value
	}
	w.Publisher = filestream.NewPublisher(cfg.name, filestream.OutputConfig{
		Path: cfg.path, Compression: cfg.compression, Append: appends, Together: cfg.together, Form: form, Mode: use.FileMode, Attempt: use.Attempt,
	})
	return use.In.ToRecords(w)
}

func (w *writer) Open(ctx context.Context, at item.Position) error {
	return w.start(at, func(at *filestream.OutputPosition) error { return w.Out.Open(ctx, at) })
}

func (w *writer) Rewind(_ context.Context, at item.Position) error {
	return w.start(at, w.Out.Rewind)
}

func (w *writer) start(at item.Position, place func(*filestream.OutputPosition) error) error {
	w.records = 0
	if w.cfg.sums != nil {
		w.cfg.sums.clear()
	}
	var pos writerPosition
	var from *filestream.OutputPosition
	if at != nil {
		if err := json.Unmarshal(at, &pos); err != nil {
			return w.Named(fmt.Errorf("cannot restart: the stored position is unreadable: %w", err))
		}
		w.records, from = pos.Records, &pos.OutputPosition
		if w.cfg.sums != nil {
			if err := w.cfg.sums.restore(pos.sumPosition); err != nil {
				return w.Named(err)
			}
		}
	}
	if w.cfg.types != nil {
		if err := w.cfg.types.begin(typesOf(pos.Types), pos.Types != nil); err != nil {
			return w.Named(err)
		}
	}
	if err := w.setTrailer(); err != nil {
		return w.Named(err)
	}
	if err := place(from); err != nil {
		return w.Named(err)
	}
	if w.Out.Begun() {
		return w.checkHeader()
	}
	w.buf = append(w.buf[:0], w.cfg.enc.BOM()...)
	if w.cfg.header != "" {
		header, err := w.cfg.marked(w.cfg.header)
		if err == nil {
			err = w.encode([]byte(header))
		}
		if err != nil {
			return w.Named(fmt.Errorf("the header: %w", err))
		}
	}
	_, err := w.Out.Write(w.buf)
	if err == nil {
		err = filestream.EndHead(w.Out)
	}
	return w.Named(err)
}

func (w *writer) checkHeader() error {
	head := w.Out.Appended()
	if w.cfg.header == "" || head == nil {
		return nil
	}
	header, err := w.cfg.marked(w.cfg.header)
	if err != nil {
		return w.Named(fmt.Errorf("the header: %w", err))
	}
	if bytes.HasPrefix(head, []byte(header)) {
		return nil
	}
	return w.Named(exception.Fatal("", fmt.Errorf("cannot append to %s: it begins with %.80q, but the header of this step is %.80q", w.cfg.path, head, header)))
}

func typesOf(at *recordtypes.Position) recordtypes.Position {
	if at == nil {
		return recordtypes.Position{}
	}
	return *at
}

func (w *writer) setTrailer() error {
	if w.cfg.types != nil {
		w.buf = w.buf[:0]
		if err := w.cfg.types.trailers(w.encode, w.cfg.types.state.Clone(), nil, w.schema); err != nil {
			return err
		}
		w.Out.SetTrailer(slices.Clone(w.buf))
		return nil
	}
	if w.cfg.trailer == nil {
		return nil
	}
	text, err := w.cfg.trailer(w.records)
	if err != nil {
		return err
	}
	w.buf = w.buf[:0]
	if err := w.encode(text); err != nil {
		return fmt.Errorf("the trailer: %w", err)
	}
	w.Out.SetTrailer(slices.Clone(w.buf))
	return nil
}

func (w *writer) encode(line []byte) (err error) {
	w.buf, err = w.cfg.appendEnded(w.buf, line)
	return err
}

// All records are encoded first: if one cannot be, the file stays unchanged.
func (w *writer) WriteRecords(_ context.Context, schema *row.Schema, records [][]row.Value) error {
	if err := w.own.EncodeRecords(schema, records); err != nil {
		return err
	}
	return w.write(&w.own)
}

func (w *writer) write(e *encoded) (err error) {
	text := e.text
	if w.cfg.types != nil {
		defer func(before *recordtypes.State) {
			if err != nil {
				w.cfg.types.state = before
			}
		}(w.cfg.types.state.Clone())
		if err := w.enclose(e); err != nil {
			return exception.InvalidItem(w.cfg.name, exception.ClassInvalidItem, err)
		}
		text = w.buf
	}
	if _, err := w.Out.Write(text); err != nil {
		return w.Named(err)
	}
	w.records += int64(len(e.records))
	return w.Named(w.sum(e.schema, e.records))
}

// enclose puts the details of a chunk between the headers and trailers that are due.
func (w *writer) enclose(e *encoded) error {
	w.buf = w.buf[:0]
	from := 0
	for i, record := range e.records {
		if err := w.cfg.types.next(w.encode, e.schema, record); err != nil {
			return err
		}
		w.buf = append(w.buf, e.text[from:e.ends[i]]...)
		from = e.ends[i]
	}
	return nil
}

func (w *writer) sum(schema *row.Schema, records [][]row.Value) error {
	if w.cfg.sums == nil {
		return nil
	}
	for i, c := range w.cfg.sums.cells {
		for _, record := range records {
			if err := w.cfg.sums.add(i, record[c.field]); err != nil {
				return fmt.Errorf("the sum of %s: %w", schema.Field(c.field).Name, err)
			}
		}
	}
	return nil
}

func (w *writer) Position() (item.Position, error) {
	pos := writerPosition{OutputPosition: w.Out.Position(), Records: w.records}
	if w.cfg.sums != nil {
		pos.sumPosition = w.cfg.sums.position()
	}
	if w.cfg.types != nil {
		at := w.cfg.types.state.Position()
		pos.Types = &at
	}
	return json.Marshal(pos)
}

func (w *writer) Stage(ctx context.Context) (bool, error) {
	if err := w.setTrailer(); err != nil {
		return false, w.Named(err)
	}
	return w.Publisher.Stage(ctx)
}

func (w *writer) Finish(ctx context.Context) error {
	if err := w.setTrailer(); err != nil {
		return w.Named(err)
	}
	return w.Publisher.Finish(ctx)
}

func writerLayout(cfg *fixedWriterConfig, in item.Type) (*layout, error) {
	if err := named(in, "columns"); err != nil {
		return nil, err
	}
	of, err := shapeOf(cfg.Length, cfg.Encoding)
	if err != nil {
		return nil, &registry.ConfigError{Key: "encoding", Err: err}
	}
	return newLayout(cfg.Columns, cfg.Record, of, in.Schema(), false)
}
