// Package jsonfile reads and writes the JSON documents of a file, with restarts:
// what the components json and jsonl have in common. They differ by framing only: the
// elements of an array, or lines.
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
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/jsontext"
)

// Config says what is read.
type Config struct {
	Name        string // of the component, for messages
	Path        string
	Compression string
	MaxLine     int64 // the longest document in bytes
}

// Reader is a item.DocumentReader. Offsets are those of filestream.Input.
type Reader struct {
	cfg   Config
	frame framing
	keys  *item.DocumentKeys // that some document must have

	in   *filestream.Input
	at   place
	line int64 // of the last document
	done bool  // nothing follows
	dead error // nothing can be read any more

	// raw is where the last document stands; lost is the line that was given up last.
	raw  span
	lost *item.RawText

	accept bool // changes of the file
	scan   jsontext.Scanner
}

// place is a point between two documents.
type place struct {
	Offset int64 `json:"offset"`
	Lines  int64 `json:"lines"` // line ends before Offset
	Items  int64 `json:"items"` // documents before Offset
}

// span is a document in the file.
type span struct{ offset, length, index int64 }

// position is the reader's item.Position.
type position struct {
	filestream.InputPosition
	Lines int64 `json:"lines"`
	Items int64 `json:"items"`
}

// framing finds documents in a file.
type framing interface {
	input(cfg *filestream.InputConfig, longest int64)
	// begin moves the reader from the start of the file to the first document.
	begin(ctx context.Context, r *Reader) error
	// next returns the document at the reader's place, and moves the place behind it.
	// A failed call leaves the place, unless its error is a item.ConsumedError.
	next(ctx context.Context, r *Reader) ([]byte, error)
}

// NewLines returns a reader of lines.
func NewLines(cfg Config) *Reader { return &Reader{cfg: cfg, frame: lines{}} }

// NewArray returns a reader of the elements of the array that is the file, or that
// stands under the key items of the object that is the file.
func NewArray(cfg Config, items string) *Reader { return &Reader{cfg: cfg, frame: array{items: items}} }

// Meta returns where the last document started.
func (r *Reader) Meta() item.Meta { return item.Meta{Path: r.cfg.Path, Line: r.line} }

// ExpectKeys makes Open look for keys.
func (r *Reader) ExpectKeys(keys item.DocumentKeys) { r.keys = &keys }

// AcceptChanges implements item.ChangesAccepter.
func (r *Reader) AcceptChanges() { r.accept = true }

// Open opens the file and finds the first document.
func (r *Reader) Open(ctx context.Context, at item.Position) error {
	if err := r.open(ctx, at); err != nil {
		return fmt.Errorf("%s: %w", r.cfg.Name, err)
	}
	return nil
}

func (r *Reader) open(ctx context.Context, at item.Position) error {
	if at == nil {
		if err := r.begin(ctx); err != nil || r.keys == nil {
			return err
		}
		return r.lookForKeys(ctx)
	}
	var pos position
	if err := json.Unmarshal(at, &pos); err != nil {
		return fmt.Errorf("cannot restart: its position is not readable: %w", err)
	}
	if err := r.openInput(ctx, &pos.InputPosition); err != nil {
		return err
	}
	r.goTo(place{Offset: pos.Offset, Lines: pos.Lines, Items: pos.Items})
	return nil
}

func (r *Reader) begin(ctx context.Context) error {
	if err := r.openInput(ctx, nil); err != nil {
		return err
	}
	r.goTo(place{Offset: r.in.Start()})
	return r.frame.begin(ctx, r)
}

func (r *Reader) openInput(ctx context.Context, at *filestream.InputPosition) error {
	cfg := filestream.InputConfig{Path: r.cfg.Path, Compression: r.cfg.Compression, Accept: r.accept}
	r.frame.input(&cfg, r.cfg.MaxLine)
	in, err := filestream.OpenInput(ctx, cfg, at)
	if err != nil {
		r.in = nil
		return err
	}
	r.in = in
	return nil
}

// goTo makes the document at p the next one.
func (r *Reader) goTo(p place) {
	r.in.Rewind(p.Offset)
	r.in.Keep(p.Offset)
	r.at, r.done, r.dead = p, false, nil
}

// advance moves the place to offset, which is buffered.
func (r *Reader) advance(offset int64) {
	r.at.Lines += r.in.Lines(r.at.Offset, offset)
	r.at.Offset = offset
	r.in.Keep(offset)
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
	return r.frame.next(ctx, r)
}

// found notes where the document is that next returns.
func (r *Reader) found(offset int64, doc []byte, index int64) {
	r.raw = span{offset: offset, length: int64(len(doc)), index: index}
}

// RawText implements item.RawReader: the last document, or the line that was given up.
func (r *Reader) RawText() item.RawText {
	if r.lost != nil {
		return *r.lost
	}
	return item.RawText{
		Text:   string(r.in.Buffered(r.raw.offset)[:r.raw.length]),
		Offset: r.raw.offset, Length: r.raw.length, Index: r.raw.index,
	}
}

// OpenRaw implements item.RawOpener.
func (r *Reader) OpenRaw(_ context.Context, meta item.Meta, raw item.RawText) error {
	r.cfg.Path, r.frame, r.in = meta.Path, document{numbered: raw.Index > 0}, filestream.TextInput(raw.Text, raw.Offset)
	r.goTo(place{Offset: raw.Offset, Lines: max(meta.Line-1, 0), Items: max(raw.Index-1, 0)})
	return nil
}

// broken says where in the file err is: offset lies behind the reader's place.
func (r *Reader) broken(offset int64, err error) error {
	switch {
	case errors.Is(err, filestream.ErrTooLong):
		offset, err = r.at.Offset, fmt.Errorf("what begins here is longer than %d bytes (max_line)", r.cfg.MaxLine)
	case errors.Is(err, io.EOF), errors.Is(err, jsontext.ErrShort):
		err = fmt.Errorf("the file ends too early: %w", io.ErrUnexpectedEOF)
	}
	line := r.at.Lines + r.in.Lines(r.at.Offset, offset) + 1
	return fmt.Errorf("%s:%d: at offset %d, behind element %d: %w", r.cfg.Path, line, offset, r.at.Items, err)
}

// Position returns the place behind the last document.
func (r *Reader) Position() (item.Position, error) {
	if r.in == nil {
		return nil, fmt.Errorf("%s: the reader is not open", r.cfg.Name)
	}
	return json.Marshal(position{InputPosition: r.in.Position(r.at.Offset), Lines: r.at.Lines, Items: r.at.Items})
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
