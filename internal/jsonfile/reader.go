// Package jsonfile reads and writes the JSON documents of a file, with restarts: the common parts
// of the components json and jsonl.
//
// It imports core with its folders, internal/filestream and internal/nearest.
package jsonfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Config configures a Reader.
type Config struct {
	Name        string // of the component, for messages
	Path        string
	Compression filestream.ReadCompression
	Member      string
	Encoding    filestream.EncodingName
	MaxLine     int64 // the longest document in bytes
	Unknown     string
	// Explode is the path of an array that becomes rows; empty means one item per document.
	Explode string
}

// Reader is an item.DocumentReader.
type Reader struct {
	cursor
	cfg     Config
	frame   framing
	longest int64
	keys    *jsontext.WantedKeys // that some document must have

	unknown *unknownKeys // nil means no warnings
	rows    *exploded    // nil means that each document is one item

	accept bool // changes of the file
}

type position struct {
	filestream.InputPosition
	Lines int64 `json:"lines"`
	Items int64 `json:"items"`
	Rows  int64 `json:"rows,omitempty"` // of the document that begins here
}

// NewLines returns a reader of lines.
func NewLines(cfg Config) *Reader {
	r := newReader(cfg, lines{})
	r.longest, r.By = cfg.MaxLine, cfg.Name
	return r
}

// NewArray returns a reader of the array at the end of the keys items.
func NewArray(cfg Config, items []string) *Reader { return newReader(cfg, array{items: items}) }

func newReader(cfg Config, frame framing) *Reader {
	r := &Reader{cursor: cursor{path: cfg.Path, maxLine: cfg.MaxLine}, cfg: cfg, frame: frame}
	if cfg.Explode != "" {
		r.rows = newExploded(cfg.Explode)
	}
	return r
}

// ExpectKeys makes Open look for keys.
func (r *Reader) ExpectKeys(keys jsontext.WantedKeys) { r.keys = &keys }

// AcceptChanges implements itemextra.ChangesAccepter.
func (r *Reader) AcceptChanges() { r.accept = true }

// Open opens the file and finds the first document.
func (r *Reader) Open(ctx context.Context, at item.Position) error {
	if err := r.open(ctx, at); err != nil {
		return fmt.Errorf("%s: %w", r.cfg.Name, err)
	}
	return nil
}

func (r *Reader) open(ctx context.Context, at item.Position) error {
	if at = r.Start(at); at == nil {
		if err := r.begin(ctx); err != nil || r.keys == nil {
			return err
		}
		return r.findKeys(ctx)
	}
	var pos position
	if err := json.Unmarshal(at, &pos); err != nil {
		return fmt.Errorf("cannot restart: the stored position is unreadable: %w", err)
	}
	if err := r.openInput(ctx, &pos.InputPosition); err != nil {
		return err
	}
	r.goTo(docPosition{Offset: pos.Offset, Lines: pos.Lines, Items: pos.Items})
	if pos.Rows == 0 {
		return nil
	}
	if r.rows == nil {
		return errors.New("cannot restart: it was in the middle of a document whose array became rows (explode), but the job file no longer has explode")
	}
	r.rows.skip = pos.Rows
	return nil
}

func (r *Reader) begin(ctx context.Context) error {
	if err := r.openInput(ctx, nil); err != nil {
		return err
	}
	r.goTo(docPosition{Offset: r.in.Start()})
	return r.frame.begin(ctx, &r.cursor)
}

func (r *Reader) openInput(ctx context.Context, at *filestream.InputPosition) error {
	cfg := filestream.InputConfig{Path: r.path, Compression: r.cfg.Compression, Member: r.cfg.Member, Encoding: r.cfg.Encoding, Accept: r.accept, Divided: r.Divided()}
	r.frame.input(&cfg, r.cfg.MaxLine)
	in, err := filestream.OpenInput(ctx, cfg, at)
	if err != nil {
		r.in = nil
		return err
	}
	r.in = in
	return nil
}

func (r *Reader) goTo(p docPosition) {
	r.in.Rewind(p.Offset)
	r.in.Keep(p.Offset)
	r.at, r.done, r.dead = p, false, nil
	if r.rows != nil {
		r.rows.doc, r.rows.skip = nil, 0
	}
}

// ReadDocument returns the next document.
func (r *Reader) ReadDocument(ctx context.Context) ([]byte, error) {
	if r.in == nil {
		return nil, fmt.Errorf("%s: the reader is not open", r.cfg.Name)
	}
	doc, err := r.next(ctx)
	if err != nil && !errors.Is(err, io.EOF) && !item.IsConsumed(err) {
		return nil, fmt.Errorf("%s: %w", r.cfg.Name, err)
	}
	return doc, err
}

func (r *Reader) next(ctx context.Context) ([]byte, error) {
	switch {
	case r.done:
		return nil, io.EOF
	case r.dead != nil:
		return nil, r.dead
	}
	r.lost = nil
	doc, err := r.nextItem(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.in.CheckDecoded(doc); err != nil {
		return nil, item.Consumed(r.Meta(), exception.InvalidItem("", exception.ClassParse, err))
	}
	return doc, nil
}

func (r *Reader) nextItem(ctx context.Context) ([]byte, error) {
	if r.rows != nil {
		return r.rows.next(ctx, r.frame, &r.cursor)
	}
	return r.frame.next(ctx, &r.cursor)
}

// RawText implements item.RawReader: the last document, or the line that was given up.
func (r *Reader) RawText() item.RawText {
	if r.lost != nil {
		return *r.lost
	}
	raw := item.RawText{Offset: r.raw.offset, Length: r.raw.length}
	if r.raw.exploded {
		raw.Text = string(r.rows.row)
	} else {
		raw.Text = string(r.in.Buffered(r.raw.offset)[:r.raw.length])
	}
	return raw
}

// OpenRaw implements item.RawOpener.
func (r *Reader) OpenRaw(_ context.Context, meta item.Meta, raw item.RawText) error {
	r.Whole()
	if r.rows = nil; meta.Row == 0 && r.cfg.Explode != "" {
		r.rows = newExploded(r.cfg.Explode)
	}
	longest := r.longest
	if meta.Row > 0 { // a part of its line
		longest = 0
	}
	r.path, r.frame, r.in = meta.Path, document{index: meta.Index, row: meta.Row, longest: longest}, filestream.TextInput(raw.Text, raw.Offset)
	r.goTo(docPosition{Offset: raw.Offset, Lines: max(meta.Line-1, 0)})
	return nil
}

// IndependentOf implements item.Independent: no step changes the file that it reads.
func (r *Reader) IndependentOf(string) bool { return true }

// Position returns the place after the last document.
func (r *Reader) Position() (item.Position, error) {
	if r.in == nil {
		return nil, fmt.Errorf("%s: the reader is not open", r.cfg.Name)
	}
	at, rows := r.at, int64(0)
	if r.rows != nil {
		at, rows = r.rows.position(at)
	}
	return json.Marshal(position{InputPosition: r.in.Position(at.Offset), Lines: at.Lines, Items: at.Items, Rows: rows})
}

// Close closes the file.
func (r *Reader) Close(context.Context) error {
	if r.in == nil {
		return nil
	}
	in := r.in
	r.in = nil
	return in.Close()
}

// UnknownKeys returns the handler of keys that the item type does not have; nil means that they are ignored.
func (r *Reader) UnknownKeys() func(path string) error {
	switch r.cfg.Unknown {
	case UnknownError:
		return func(path string) error { return &jsontext.UnknownKeyError{Path: path} }
	case UnknownWarn:
		r.unknown = &unknownKeys{seen: map[string]bool{}}
		return func(path string) error {
			r.unknown.add(path, r.Meta())
			return nil
		}
	}
	return nil
}

// Warnings implements itemextra.Warner.
func (r *Reader) Warnings() []string {
	if r.unknown == nil {
		return nil
	}
	return r.unknown.take()
}

// NotValid is the predicate of a message about damaged text.
func (r *Reader) NotValid() string { return r.in.NotValid() }
