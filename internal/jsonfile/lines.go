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
