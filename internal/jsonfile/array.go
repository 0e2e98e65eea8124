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

func (a array) begin(ctx context.Context, c *cursor) error {
	if len(a.items) > 0 {
		return a.findItems(ctx, c)
	}
	i, err := c.skipBlanks(ctx, 0)
	if err != nil {
		return err
	}
	if c.in.Buffered(c.at.Offset)[i] == '{' {
		return c.broken(c.at.Offset+int64(i), errors.New(`found "{", expected "[": set items to the path of the array in the object, such as items: data.rows`))
	}
	if err := c.expect(i, '['); err != nil {
		return err
	}
	c.advance(c.at.Offset + int64(i) + 1)
	return nil
}

func (c *cursor) skipBlanks(ctx context.Context, i int) (int, error) {
	for {
		text := c.in.Buffered(c.at.Offset)
		for i < len(text) && jsontext.IsBlank(text[i]) {
			i++
		}
		if i < len(text) {
			return i, nil
		}
		if err := c.in.More(ctx); err != nil {
			return i, c.broken(c.at.Offset+int64(i), err)
		}
	}
}

func (c *cursor) expect(i int, want byte) error {
	if got := c.in.Buffered(c.at.Offset)[i:]; got[0] != want {
		return c.broken(c.at.Offset+int64(i), fmt.Errorf("found %q, expected %q", character(got), string(want)))
	}
	return nil
}

func (a array) next(ctx context.Context, c *cursor) ([]byte, error) {
	i, err := c.skipBlanks(ctx, 0)
	if err != nil {
		return nil, err
	}
	if c.in.Buffered(c.at.Offset)[i] == ']' {
		if c.dead = a.finish(ctx, c, c.at.Offset+int64(i)+1); c.dead != nil {
			return nil, c.dead
		}
		c.done = true
		return nil, io.EOF
	}
	if c.at.Items > 0 {
		if err := c.expect(i, ','); err != nil {
			return nil, err
		}
		if i, err = c.skipBlanks(ctx, i+1); err != nil {
			return nil, err
		}
	}
	n, err := c.element(ctx, i)
	if err != nil {
		return nil, err
	}
	start := c.at.Offset + int64(i)
	doc := c.in.Buffered(start)[:n:n]
	c.line = c.at.Lines + c.in.Lines(c.at.Offset, start) + 1
	c.advance(start + int64(n))
	c.at.Items++
	c.found(start, doc, c.at.Items)
	return doc, nil
}

// element doubles its reads, so that the time is linear in the length.
func (c *cursor) element(ctx context.Context, i int) (int, error) {
	for atEnd := false; ; {
		text := c.in.Buffered(c.at.Offset)[i:]
		n, err := c.scan.ValueLen(text, atEnd)
		switch {
		case err == nil && int64(n) > c.maxLine:
			return 0, c.broken(c.at.Offset, filestream.ErrTooLong)
		case err == nil:
			return n, nil
		case atEnd || !errors.Is(err, jsontext.ErrShort):
			return 0, c.brokenElement(c.at.Offset+int64(i), len(text), err)
		}
		for want := i + 2*len(text); len(c.in.Buffered(c.at.Offset)) <= want && !atEnd; {
			err := c.in.More(ctx)
			if atEnd = errors.Is(err, io.EOF); err != nil && !atEnd {
				return 0, c.broken(c.at.Offset, err)
			}
		}
	}
}

func (c *cursor) brokenElement(offset int64, known int, err error) error {
	var syntax *jsontext.SyntaxError
	if errors.As(err, &syntax) {
		return c.broken(offset+int64(syntax.Offset), err)
	}
	return c.broken(offset+int64(known), err)
}

// finish reads to the end of the file; the position stays before the array's end, so that a restart
// finds it again.
func (a array) finish(ctx context.Context, c *cursor, offset int64) error {
	place := c.at
	defer func() { c.at = place }()
	c.advance(offset)
	if len(a.items) == 0 {
		return c.expectEnd(ctx)
	}
	d := c.decode(strings.Repeat(`{"":`, len(a.items)) + "[]")
	for range 2*len(a.items) + 2 {
		if _, err := d.Token(); err != nil {
			return c.failed(d, err)
		}
	}
	for _, key := range slices.Backward(a.items) {
		_, twice, err := c.skipMembers(ctx, d, key)
		if err == nil && twice {
			err = c.failed(d, fmt.Errorf("the key %q is there twice", key))
		}
		if err != nil {
			return err
		}
	}
	return c.expectEnd(ctx)
}

func character(text []byte) string {
	_, n := utf8.DecodeRune(text)
	return string(text[:n])
}

func (c *cursor) expectEnd(ctx context.Context) error {
	for {
		text := c.in.Buffered(c.at.Offset)
		for i := range text {
			if !jsontext.IsBlank(text[i]) {
				return c.broken(c.at.Offset+int64(i), fmt.Errorf("found %q after the end of the document", character(text[i:])))
			}
		}
		c.advance(c.at.Offset + int64(len(text)))
		if err := c.in.More(ctx); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return c.broken(c.at.Offset, err)
		}
	}
}

type decoder struct {
	*json.Decoder
	base int64 // offset that it calls 0
}

func (c *cursor) decode(before string) decoder {
	c.in.Rewind(c.at.Offset)
	return decoder{
		Decoder: json.NewDecoder(io.MultiReader(strings.NewReader(before), c.in)),
		base:    c.at.Offset - int64(len(before)),
	}
}

func (c *cursor) token(d decoder) (json.Token, error) {
	token, err := d.Token()
	if err != nil {
		return nil, c.failed(d, err)
	}
	c.advance(d.base + d.InputOffset())
	return token, nil
}

func (c *cursor) failed(d decoder, err error) error {
	if failed := c.in.Failed(); failed != nil {
		err = failed
	}
	offset := max(c.at.Offset, d.base+d.InputOffset())
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		offset, err = c.at.Offset+int64(len(c.in.Buffered(c.at.Offset))), io.EOF
	}
	return c.broken(offset, err)
}

func (c *cursor) expectToken(d decoder, want json.Delim) error {
	token, err := c.token(d)
	if err != nil {
		return err
	}
	if token != want {
		return c.broken(c.at.Offset, fmt.Errorf("found %s, expected %q", describe(token), want))
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

func (a array) findItems(ctx context.Context, c *cursor) error {
	d := c.decode("")
	for _, key := range a.items {
		if err := c.expectToken(d, '{'); err != nil {
			return err
		}
		passed, found, err := c.skipMembers(ctx, d, key)
		if err == nil && !found {
			err = c.broken(c.at.Offset, fmt.Errorf("the object has no key %q%s", key, nearest.Hint(key, passed)))
		}
		if err != nil {
			return err
		}
	}
	return c.expectToken(d, '[')
}

func (c *cursor) skipMembers(ctx context.Context, d decoder, key string) (passed []string, found bool, err error) {
	const maxNames = 20
	for depth := 0; ; {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if depth == 0 && d.More() {
			name, err := c.token(d)
			if err != nil || name == key {
				return nil, err == nil, err
			}
			if text, ok := name.(string); ok && len(passed) < maxNames {
				passed = append(passed, text)
			}
		}
		token, err := c.token(d)
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
