package jsonfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/internal/nearest"
)

// array frames the elements of one array; items are the keys that lead to it. The text after it is
// checked after the last element.
type array struct{ items []string }

// input limits the buffer: the end of an endless element is never found.
func (array) input(cfg *filestream.InputConfig, longest int64) { cfg.Max = longest }

func (a array) begin(ctx context.Context, r *Reader) error {
	if len(a.items) > 0 {
		return a.findItems(ctx, r)
	}
	i, err := r.skipBlanks(ctx, 0)
	if err != nil {
		return err
	}
	if r.in.Buffered(r.at.Offset)[i] == '{' {
		return r.broken(r.at.Offset+int64(i), errors.New(`found "{", expected "[": set items to the path of the array in the object, such as items: data.rows`))
	}
	if err := r.expect(i, '['); err != nil {
		return err
	}
	r.advance(r.at.Offset + int64(i) + 1)
	return nil
}

func (r *Reader) skipBlanks(ctx context.Context, i int) (int, error) {
	for {
		text := r.in.Buffered(r.at.Offset)
		for i < len(text) && jsontext.IsBlank(text[i]) {
			i++
		}
		if i < len(text) {
			return i, nil
		}
		if err := r.in.More(ctx); err != nil {
			return i, r.broken(r.at.Offset+int64(i), err)
		}
	}
}

func (r *Reader) expect(i int, want byte) error {
	if got := r.in.Buffered(r.at.Offset)[i:]; got[0] != want {
		return r.broken(r.at.Offset+int64(i), fmt.Errorf("found %q, expected %q", character(got), string(want)))
	}
	return nil
}

func (a array) next(ctx context.Context, r *Reader) ([]byte, error) {
	i, err := r.skipBlanks(ctx, 0)
	if err != nil {
		return nil, err
	}
	if r.in.Buffered(r.at.Offset)[i] == ']' {
		if r.dead = a.finish(ctx, r, r.at.Offset+int64(i)+1); r.dead != nil {
			return nil, r.dead
		}
		r.done = true
		return nil, io.EOF
	}
	if r.at.Items > 0 {
		if err := r.expect(i, ','); err != nil {
			return nil, err
		}
		if i, err = r.skipBlanks(ctx, i+1); err != nil {
			return nil, err
		}
	}
	n, err := r.element(ctx, i)
	if err != nil {
		return nil, err
	}
	start := r.at.Offset + int64(i)
	doc := r.in.Buffered(start)[:n:n]
	r.line = r.at.Lines + r.in.Lines(r.at.Offset, start) + 1
	r.advance(start + int64(n))
	r.at.Items++
	r.found(start, doc, r.at.Items)
	return doc, nil
}

// element doubles its reads, so that the time is linear in the length.
func (r *Reader) element(ctx context.Context, i int) (int, error) {
	for atEnd := false; ; {
		text := r.in.Buffered(r.at.Offset)[i:]
		n, err := r.scan.ValueLen(text, atEnd)
		switch {
		case err == nil && int64(n) > r.cfg.MaxLine:
			return 0, r.broken(r.at.Offset, filestream.ErrTooLong)
		case err == nil:
			return n, nil
		case atEnd || !errors.Is(err, jsontext.ErrShort):
			return 0, r.brokenElement(r.at.Offset+int64(i), len(text), err)
		}
		for want := i + 2*len(text); len(r.in.Buffered(r.at.Offset)) <= want && !atEnd; {
			err := r.in.More(ctx)
			if atEnd = errors.Is(err, io.EOF); err != nil && !atEnd {
				return 0, r.broken(r.at.Offset, err)
			}
		}
	}
}

func (r *Reader) brokenElement(offset int64, known int, err error) error {
	var syntax *jsontext.SyntaxError
	if errors.As(err, &syntax) {
		return r.broken(offset+int64(syntax.Offset), err)
	}
	return r.broken(offset+int64(known), err)
}

// finish reads to the end of the file; the position stays before the array's end, so that a restart
// finds it again.
func (a array) finish(ctx context.Context, r *Reader, offset int64) error {
	place := r.at
	defer func() { r.at = place }()
	r.advance(offset)
	if len(a.items) == 0 {
		return r.expectEnd(ctx)
	}
	d := r.decode(strings.Repeat(`{"":`, len(a.items)) + "[]")
	for range 2*len(a.items) + 2 {
		if _, err := d.Token(); err != nil {
			return r.failed(d, err)
		}
	}
	for _, key := range slices.Backward(a.items) {
		_, twice, err := r.skipMembers(ctx, d, key)
		if err == nil && twice {
			err = r.failed(d, fmt.Errorf("the key %q is there twice", key))
		}
		if err != nil {
			return err
		}
	}
	return r.expectEnd(ctx)
}

func character(text []byte) string {
	_, n := utf8.DecodeRune(text)
	return string(text[:n])
}

func (r *Reader) expectEnd(ctx context.Context) error {
	for {
		text := r.in.Buffered(r.at.Offset)
		for i, c := range text {
			if !jsontext.IsBlank(c) {
				return r.broken(r.at.Offset+int64(i), fmt.Errorf("found %q after the end of the document", character(text[i:])))
			}
		}
		r.advance(r.at.Offset + int64(len(text)))
		if err := r.in.More(ctx); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return r.broken(r.at.Offset, err)
		}
	}
}

type decoder struct {
	*json.Decoder
	base int64 // offset that it calls 0
}

func (r *Reader) decode(before string) decoder {
	r.in.Rewind(r.at.Offset)
	return decoder{
		Decoder: json.NewDecoder(io.MultiReader(strings.NewReader(before), r.in)),
		base:    r.at.Offset - int64(len(before)),
	}
}

func (r *Reader) token(d decoder) (json.Token, error) {
	token, err := d.Token()
	if err != nil {
		return nil, r.failed(d, err)
	}
	r.advance(d.base + d.InputOffset())
	return token, nil
}

func (r *Reader) failed(d decoder, err error) error {
	if failed := r.in.Failed(); failed != nil {
		err = failed
	}
	offset := max(r.at.Offset, d.base+d.InputOffset())
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		offset, err = r.at.Offset+int64(len(r.in.Buffered(r.at.Offset))), io.EOF
	}
	return r.broken(offset, err)
}

func (r *Reader) expectToken(d decoder, want json.Delim) error {
	token, err := r.token(d)
	if err != nil {
		return err
	}
	if token != want {
		return r.broken(r.at.Offset, fmt.Errorf("found %s, expected %q", describe(token), want))
	}
	return nil
}

func describe(token json.Token) string {
	if d, ok := token.(json.Delim); ok {
		return fmt.Sprintf("%q", d)
	}
	if token == nil {
		return "null"
	}
	return fmt.Sprintf("%.60q", fmt.Sprint(token))
}

func (a array) findItems(ctx context.Context, r *Reader) error {
	d := r.decode("")
	for _, key := range a.items {
		if err := r.expectToken(d, '{'); err != nil {
			return err
		}
		passed, found, err := r.skipMembers(ctx, d, key)
		if err == nil && !found {
			err = r.broken(r.at.Offset, fmt.Errorf("the object has no key %q%s", key, nearest.Hint(key, passed)))
		}
		if err != nil {
			return err
		}
	}
	return r.expectToken(d, '[')
}

func (r *Reader) skipMembers(ctx context.Context, d decoder, key string) (passed []string, found bool, err error) {
	const maxNames = 20
	for depth := 0; ; {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if depth == 0 && d.More() {
			name, err := r.token(d)
			if err != nil || name == key {
				return nil, err == nil, err
			}
			if text, ok := name.(string); ok && len(passed) < maxNames {
				passed = append(passed, text)
			}
		}
		token, err := r.token(d)
		if err != nil {
			return nil, false, err
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			if depth--; depth < 0 {
				return passed, false, nil
			}
		}
	}
}
