package json

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// NewReader returns a reader of items of the type.
func NewReader(cfg ReaderConfig, item core.ItemType) (core.Reader, error) {
	item, err := itemOf(item)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	if cfg.MaxLine == 0 {
		cfg.MaxLine = DefaultMaxLine
	}
	return item.FromDocuments(&reader{cfg: cfg})
}

// reader is the core.DocumentReader. Offsets are those of filestream.Input.
type reader struct {
	cfg  ReaderConfig
	in   *filestream.Input
	dec  *stdjson.Decoder
	base int64 // offset of what dec calls 0
	at   place
	doc  stdjson.RawMessage
	line int64 // of the last element
	done bool  // behind the array's end
}

// place is a point between two elements.
type place struct {
	Offset int64 `json:"offset"`
	Lines  int64 `json:"lines"` // line ends before Offset
	Items  int64 `json:"items"` // elements before Offset
}

// position is the reader's core.Position.
type position struct {
	filestream.InputPosition
	Lines int64 `json:"lines"`
	Items int64 `json:"items"`
}

// Meta returns where the last element started.
func (r *reader) Meta() core.Meta { return core.Meta{Path: r.cfg.Path, Line: r.line} }

// Open opens the file and finds the array.
func (r *reader) Open(ctx context.Context, at core.Position) error {
	if err := r.open(ctx, at); err != nil {
		return fmt.Errorf("json: %w", err)
	}
	return nil
}

func (r *reader) open(ctx context.Context, at core.Position) error {
	var pos position
	var from *filestream.InputPosition
	if at != nil {
		if err := stdjson.Unmarshal(at, &pos); err != nil {
			return fmt.Errorf("cannot restart: its position is not readable: %w", err)
		}
		from = &pos.InputPosition
	}
	cfg := filestream.InputConfig{Path: r.cfg.Path, Compression: r.cfg.Compression, Max: int64(r.cfg.MaxLine), Accept: core.ChangesAccepted(ctx)}
	in, err := filestream.OpenInput(ctx, cfg, from)
	if err != nil {
		return err
	}
	r.in = in
	if at != nil {
		r.goOn(place{Offset: pos.Offset, Lines: pos.Lines, Items: pos.Items})
		return nil
	}
	r.dec, r.base, r.at = stdjson.NewDecoder(in), in.Start(), place{Offset: in.Start()}
	if err := r.findArray(); err != nil {
		return r.broken(err)
	}
	r.goOn(r.at)
	return nil
}

// goOn makes the element at p the next one. The decoder must believe that it is
// in an array, behind an element if there was one: a comma may follow only then.
func (r *reader) goOn(p place) {
	before := "["
	if p.Items > 0 {
		before = "[0"
	}
	r.in.Rewind(p.Offset)
	r.in.Keep(p.Offset)
	r.dec = stdjson.NewDecoder(io.MultiReader(strings.NewReader(before), r.in))
	r.base, r.at, r.done = p.Offset-int64(len(before)), p, false
	for range before {
		_, _ = r.dec.Token() //nolint:errcheck // the tokens are there; a read that fails already fails again for the element
	}
}

// findArray reads up to the array's beginning.
func (r *reader) findArray() error {
	if r.cfg.Items == "" {
		return r.expect('[')
	}
	if err := r.expect('{'); err != nil {
		return err
	}
	for r.dec.More() {
		key, err := r.token()
		if err != nil {
			return err
		}
		if key == r.cfg.Items {
			return r.expect('[')
		}
		if err := r.skipValue(); err != nil {
			return err
		}
	}
	if err := r.expect('}'); err != nil {
		return err
	}
	return fmt.Errorf("the object has no key %q", r.cfg.Items)
}

func (r *reader) expect(delim stdjson.Delim) error {
	token, err := r.token()
	if err != nil {
		return err
	}
	if token != delim {
		return fmt.Errorf("found %s, expected %q", describe(token), delim)
	}
	return nil
}

func describe(token stdjson.Token) string {
	if d, ok := token.(stdjson.Delim); ok {
		return fmt.Sprintf("%q", d)
	}
	if token == nil {
		return "null"
	}
	return fmt.Sprintf("%.60q", fmt.Sprint(token))
}

// token reads a token outside the elements.
func (r *reader) token() (stdjson.Token, error) {
	token, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	r.advance()
	return token, nil
}

// skipValue passes a value of any size token by token.
func (r *reader) skipValue() error {
	for depth := 0; ; {
		token, err := r.token()
		if err != nil {
			return err
		}
		switch token {
		case stdjson.Delim('['), stdjson.Delim('{'):
			depth++
		case stdjson.Delim(']'), stdjson.Delim('}'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// advance moves the place behind what the decoder read.
func (r *reader) advance() {
	end := r.base + r.dec.InputOffset()
	r.at.Lines += r.in.Lines(r.at.Offset, end)
	r.at.Offset = end
	r.in.Keep(end)
}

// ReadDocument returns the next element.
func (r *reader) ReadDocument(context.Context) ([]byte, error) {
	switch {
	case r.in == nil:
		return nil, errors.New("json: the reader is not open")
	case r.done:
		return nil, io.EOF
	case !r.dec.More():
		if err := r.finish(); err != nil {
			return nil, r.again(err)
		}
		r.done = true
		return nil, io.EOF
	}
	if err := r.dec.Decode(&r.doc); err != nil {
		return nil, r.again(err)
	}
	start := r.base + r.dec.InputOffset() - int64(len(r.doc))
	r.line = r.at.Lines + r.in.Lines(r.at.Offset, start) + 1
	r.advance()
	r.at.Items++
	return r.doc, nil
}

// finish checks the array's end. The place stays before it, so that a restart
// there finds the end again.
func (r *reader) finish() error {
	token, err := r.dec.Token()
	if err != nil {
		return err
	}
	if token != stdjson.Delim(']') {
		return fmt.Errorf(`found %s, expected "]"`, describe(token))
	}
	if r.cfg.Items != "" {
		return nil
	}
	switch token, err = r.dec.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("found %s behind the array", describe(token))
}

// again makes the failed element the next one again: nothing is consumed.
func (r *reader) again(err error) error {
	err = fmt.Errorf("json: %w", r.broken(err))
	r.goOn(r.at)
	return err
}

// broken says where the file is no JSON. The end of the file inside the array
// must not pass for the end of the data.
func (r *reader) broken(err error) error {
	failed := r.in.Failed()
	switch {
	case errors.Is(failed, filestream.ErrTooLong):
		err = fmt.Errorf("the element is longer than %d bytes (max_line)", r.cfg.MaxLine)
	case failed != nil:
		err = failed
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%s: behind element %d, line %d: %w", r.cfg.Path, r.at.Items, r.at.Lines+1, err)
}

// Position returns the place behind the last element.
func (r *reader) Position() (core.Position, error) {
	if r.in == nil {
		return nil, errors.New("json: the reader is not open")
	}
	return stdjson.Marshal(position{InputPosition: r.in.Position(r.at.Offset), Lines: r.at.Lines, Items: r.at.Items})
}

// Close closes the file.
func (r *reader) Close(context.Context) error {
	if r.in == nil {
		return nil
	}
	in := r.in
	r.in = nil
	return in.Close()
}
