package jsonfile

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/surfin-batch/surfin/internal/filestream"
)

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
