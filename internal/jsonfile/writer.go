package jsonfile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// WriterConfig configures a Writer.
type WriterConfig struct {
	Path        string
	Compression filestream.WriteCompression
	Encoding    filestream.EncodingName
	Append      bool // of lines only
	Together    bool // of lines only
}

// Writer writes documents: an item.DocumentWriter of a file (rules C15, C15b).
type Writer struct {
	frame frame
	joins bool
	enc   *filestream.Encoder
	out   *filestream.Output
	items int64 // in the file
	buf   bytes.Buffer
}

type frame struct {
	name           string // of the component, for messages
	begin, trailer string
	put            func(buf *bytes.Buffer, doc []byte, first bool) error
}

// NewLinesWriter returns a writer of one document for each line.
func NewLinesWriter(cfg WriterConfig, use registry.BuildContext) (*Writer, error) {
	return newWriter(cfg, use, frame{name: "jsonl", put: putLine})
}

// NewArrayWriter returns a writer of one array, an element on each line.
func NewArrayWriter(cfg WriterConfig, use registry.BuildContext) (*Writer, error) {
	return newWriter(cfg, use, frame{name: "json", begin: "[", trailer: "\n]\n", put: putElement})
}

func newWriter(cfg WriterConfig, use registry.BuildContext, f frame) (*Writer, error) {
	enc, err := filestream.NewEncoder(cfg.Encoding)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	trailer, err := enc.Append(nil, []byte(f.trailer))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	appends, err := filestream.AppendTo(cfg.Append, cfg.Encoding, "\n")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	form := filestream.Form{filestream.FormWriter: f.name, "encoding": filestream.CanonicalEncoding(cfg.Encoding)}
	return &Writer{frame: f, joins: cfg.Together, enc: enc, out: filestream.NewOutput(filestream.OutputConfig{
		Path: cfg.Path, Compression: cfg.Compression, Append: appends, Together: cfg.Together, Form: form, Trailer: trailer, Mode: use.FileMode, Attempt: use.Attempt,
	})}, nil
}

func putLine(buf *bytes.Buffer, doc []byte, _ bool) error {
	if !bytes.ContainsAny(doc, "\r\n") {
		buf.Write(doc)
	} else if err := json.Compact(buf, doc); err != nil {
		return exception.InvalidItem("", exception.ClassInvalidItem, err)
	}
	return buf.WriteByte('\n')
}

func putElement(buf *bytes.Buffer, doc []byte, first bool) error {
	if !first {
		buf.WriteByte(',')
	}
	buf.WriteByte('\n')
	buf.Write(doc)
	return nil
}

type writerPosition struct {
	filestream.OutputPosition
	Items int64 `json:"items"`
}

// Open starts the file, or continues after the committed part.
func (w *Writer) Open(ctx context.Context, at item.Position) error {
	return w.start(at, func(at *filestream.OutputPosition) error { return w.out.Open(ctx, at) })
}

// Joins implements itemextra.Joiner.
func (w *Writer) Joins() bool { return w.joins }

// JoinParts implements itemextra.Joiner.
func (w *Writer) JoinParts(ctx context.Context, at item.Position, parts []item.Position) error {
	joined, err := filestream.JoinedAt(parts)
	if err != nil {
		return w.named(err)
	}
	return w.start(at, func(at *filestream.OutputPosition) error { return filestream.Join(ctx, w.out, at, joined) })
}

// Rewind discards the documents written since at (item.Rewinder).
func (w *Writer) Rewind(_ context.Context, at item.Position) error {
	return w.start(at, w.out.Rewind)
}

func (w *Writer) start(at item.Position, place func(*filestream.OutputPosition) error) error {
	w.items = 0
	if at == nil {
		if err := place(nil); err != nil || w.out.Begun() {
			return w.named(err)
		}
		return w.begin(nil)
	}
	var pos writerPosition
	if err := json.Unmarshal(at, &pos); err != nil {
		return w.named(fmt.Errorf("cannot restart: the stored position is unreadable: %w", err))
	}
	w.items = pos.Items
	if err := place(&pos.OutputPosition); err != nil || w.out.Begun() {
		return w.named(err)
	}
	return w.begin(nil)
}

func (w *Writer) begin(err error) error {
	if err == nil {
		_, err = w.out.Write(w.enc.BOM())
	}
	if err == nil {
		w.buf.Reset()
		w.buf.WriteString(w.frame.begin)
		if err = w.encode(0); err == nil {
			err = w.write(0)
		}
	}
	if err == nil {
		err = filestream.EndHead(w.out)
	}
	return w.named(err)
}

func (w *Writer) write(documents int64) error {
	if _, err := w.out.Write(w.buf.Bytes()); err != nil {
		return err
	}
	w.items += documents
	return nil
}

func (w *Writer) encode(start int) error {
	if w.enc.IsUTF8() {
		return nil
	}
	encoded, err := w.enc.Append(nil, w.buf.Bytes()[start:])
	if err != nil {
		return exception.InvalidItem("", exception.ClassInvalidItem, err)
	}
	w.buf.Truncate(start)
	w.buf.Write(encoded)
	return nil
}

// WriteDocuments appends the documents. If one is not JSON, the file stays unchanged.
func (w *Writer) WriteDocuments(_ context.Context, docs [][]byte) error {
	w.buf.Reset()
	for i, doc := range docs {
		start := w.buf.Len()
		err := w.frame.put(&w.buf, doc, w.items == 0 && i == 0)
		if err == nil {
			err = w.encode(start)
		}
		if err != nil {
			return w.named(err)
		}
	}
	return w.named(w.write(int64(len(docs))))
}

// WritesAhead implements itemextra.AheadWriter.
func (w *Writer) WritesAhead() bool { return filestream.WritesAhead(w.out) }

// Prepare makes the chunk survive a crash (item.Preparer).
func (w *Writer) Prepare(context.Context) error { return w.named(w.out.Sync()) }

// Position returns the end of the documents.
func (w *Writer) Position() (item.Position, error) {
	return json.Marshal(writerPosition{OutputPosition: w.out.Position(), Items: w.items})
}

// Release removes the files of earlier attempts (item.Releaser).
func (w *Writer) Release(ctx context.Context) error { return w.named(w.out.Release(ctx)) }

// Stage prepares the publication where a place needs one (itemextra.Stager).
func (w *Writer) Stage(ctx context.Context) (bool, error) {
	staged, err := w.out.Stage(ctx)
	return staged, w.named(err)
}

// Finish ends the file and publishes it by a rename.
func (w *Writer) Finish(ctx context.Context) error { return w.named(w.out.Finish(ctx)) }

// Close closes the file.
func (w *Writer) Close(context.Context) error { return w.out.Close() }

func (w *Writer) named(err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", w.frame.name, err)
	}
	return nil
}
