package jsonfile

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// cursor is the position in the file, and the last document: what the framings move.
type cursor struct {
	filestream.Confined
	path    string
	maxLine int64 // the longest document in bytes
	in      *filestream.Input
	at      docPosition
	scan    jsontext.Scanner
	done    bool  // nothing follows
	dead    error // nothing can be read any more

	line       int64 // of the last document
	index, row int64
	raw        span          // the position of the last document
	lost       *item.RawText // the line that was given up last
}

type docPosition struct {
	Offset int64 `json:"offset"`
	Lines  int64 `json:"lines"` // line ends before Offset
	Items  int64 `json:"items"` // documents before Offset
}

type span struct {
	offset, length int64
	exploded       bool // a row stands for it
}

type framing interface {
	input(cfg *filestream.InputConfig, longest int64)
	begin(ctx context.Context, c *cursor) error
	next(ctx context.Context, c *cursor) ([]byte, error)
}

// Meta returns where the last document started.
func (c *cursor) Meta() item.Meta {
	return item.Meta{Path: c.path, Line: c.line, Index: c.index, Row: c.row}
}

func (c *cursor) advance(offset int64) {
	c.at.Lines += c.in.Lines(c.at.Offset, offset)
	c.at.Offset = offset
	c.in.Keep(offset)
}

func (c *cursor) moveLine(size int64) {
	c.at.Offset += size
	c.at.Lines++
	c.line = c.at.Lines
	c.in.Keep(c.at.Offset)
}

func (c *cursor) found(offset int64, doc []byte, index int64) {
	c.raw, c.index, c.row = span{offset: offset, length: int64(len(doc))}, index, 0
}

func (c *cursor) broken(offset int64, err error) error {
	switch {
	case errors.Is(err, filestream.ErrTooLong):
		offset, err = c.at.Offset, fmt.Errorf("the element that starts here is longer than %d bytes (max_line)", c.maxLine)
	case errors.Is(err, io.EOF), errors.Is(err, jsontext.ErrShort):
		err = fmt.Errorf("the file is incomplete: %w", io.ErrUnexpectedEOF)
	}
	line := c.at.Lines + c.in.Lines(c.at.Offset, offset) + 1
	return fmt.Errorf("%s:%d: at offset %d, after element %d: %w", c.path, line, offset, c.at.Items, err)
}

func (c *cursor) tooLong(size, longest int64) error {
	return item.Consumed(c.Meta(), exception.InvalidItem("", exception.ClassParse,
		fmt.Errorf("the line has %d bytes, more than %d (max_line)", size, longest)))
}
