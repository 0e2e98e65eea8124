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
	filestream.Publisher
	frame frame
	joins bool
	enc   *filestream.Encoder
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
	return &Writer{frame: f, joins: cfg.Together, enc: enc, Publisher: filestream.NewPublisher(f.name, filestream.OutputConfig{
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
	return w.start(at, func(at *filestream.OutputPosition) error { return w.Out.Open(ctx, at) })
}

// Joins implements itemextra.Joiner.
func (w *Writer) Joins() bool { return w.joins }

// JoinParts implements itemextra.Joiner.
func (w *Writer) JoinParts(ctx context.Context, at item.Position, parts []item.Position) error {
	joined, err := filestream.JoinedAt(parts)
	if err != nil {
		return w.Named(err)
	}
	return w.start(at, func(at *filestream.OutputPosition) error { return filestream.Join(ctx, w.Out, at, joined) })
}

// Rewind discards the documents written since at (item.Rewinder).
func (w *Writer) Rewind(_ context.Context, at item.Position) error {
	return w.start(at, w.Out.Rewind)
}

func (w *Writer) start(at item.Position, place func(*filestream.OutputPosition) error) error {
	w.items = 0
	if at == nil {
		if err := place(nil); err != nil || w.Out.Begun() {
			return w.Named(err)
		}
		return w.begin(nil)
	}
	var pos writerPosition
	if err := json.Unmarshal(at, &pos); err != nil {
		return w.Named(fmt.Errorf("cannot restart: the stored position is unreadable: %w", err))
	}
	w.items = pos.Items
	if err := place(&pos.OutputPosition); err != nil || w.Out.Begun() {
		return w.Named(err)
	}
	return w.begin(nil)
}

func (w *Writer) begin(err error) error {
	if err == nil {
		_, err = w.Out.Write(w.enc.BOM())
	}
	if err == nil {
		w.buf.Reset()
		w.buf.WriteString(w.frame.begin)
		if err = w.encode(0); err == nil {
			err = w.write(0)
		}
	}
	if err == nil {
		err = filestream.EndHead(w.Out)
	}
	return w.Named(err)
}

func (w *Writer) write(documents int64) error {
	if _, err := w.Out.Write(w.buf.Bytes()); err != nil {
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
			return w.Named(err)
		}
	}
	return w.Named(w.write(int64(len(docs))))
}

// Position returns the end of the documents.
func (w *Writer) Position() (item.Position, error) {
	return json.Marshal(writerPosition{OutputPosition: w.Out.Position(), Items: w.items})
}
