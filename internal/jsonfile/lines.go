package jsonfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/surfin-batch/surfin/internal/filestream"
)

const blanks = " \t\r\n"

type lines struct{}

func (lines) input(cfg *filestream.InputConfig, _ int64) { cfg.Lines = true }

func (lines) begin(context.Context, *cursor) error { return nil }

func (l lines) next(ctx context.Context, c *cursor) ([]byte, error) {
	for {
		if c.Ends(c.at.Offset) {
			return nil, io.EOF
		}
		line, err := c.in.Line(ctx, c.at.Offset, c.maxLine)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				err = fmt.Errorf("%s:%d: %w", c.path, c.at.Lines+1, err)
			}
			return nil, err
		}
		if line == nil {
			return nil, l.skip(ctx, c)
		}
		start := c.at.Offset
		c.moveLine(int64(len(line)))
		doc := bytes.TrimLeft(line, blanks)
		start += int64(len(line) - len(doc))
		if doc = bytes.TrimRight(doc, blanks); len(doc) > 0 {
			c.found(start, doc, 0)
			return doc, nil
		}
	}
}

func (lines) skip(ctx context.Context, c *cursor) error {
	end, err := c.in.SkipLine(ctx, c.at.Offset)
	if err != nil { // some of it is no longer buffered, so that it cannot be read again
		c.dead = fmt.Errorf("%s:%d: %w", c.path, c.at.Lines+1, err)
		return c.dead
	}
	c.moveLine(end - c.at.Offset)
	raw := c.in.Skipped().Raw()
	c.lost = &raw
	return c.tooLong(raw.Length, c.maxLine)
}

// document is one element or line that is read again: a mistake is the item's fault.
type document struct{ index, row, longest int64 }

func (document) input(*filestream.InputConfig, int64) {}

func (document) begin(context.Context, *cursor) error { return nil }

func (d document) next(ctx context.Context, c *cursor) ([]byte, error) {
	for {
		err := c.in.More(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	start := c.at.Offset
	text := c.in.Buffered(start)
	doc := bytes.TrimLeft(text, blanks)
	start += int64(len(text) - len(doc))
	doc = bytes.TrimRight(doc, blanks)
	c.line = c.at.Lines + c.in.Lines(c.at.Offset, start) + 1
	c.advance(c.at.Offset + int64(len(text)))
	if len(doc) == 0 {
		return nil, io.EOF
	}
	c.found(start, doc, d.index)
	c.row = d.row
	if size := int64(len(text)); d.longest > 0 && size > d.longest {
		return nil, c.tooLong(size, d.longest)
	}
	return doc, nil
}
