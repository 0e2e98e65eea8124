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

func (document) begin(context.Context, *Reader) error { return nil }

func (d document) next(ctx context.Context, r *Reader) ([]byte, error) {
	for {
		err := r.in.More(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	start := r.at.Offset
	text := r.in.Buffered(start)
	doc := bytes.TrimLeft(text, blanks)
	start += int64(len(text) - len(doc))
	doc = bytes.TrimRight(doc, blanks)
	r.line = r.at.Lines + r.in.Lines(r.at.Offset, start) + 1
	r.advance(r.at.Offset + int64(len(text)))
	if len(doc) == 0 {
		return nil, io.EOF
	}
	r.found(start, doc, d.index)
	r.row = d.row
	if size := int64(len(text)); d.longest > 0 && size > d.longest {
		return nil, r.tooLong(size, d.longest)
	}
	return doc, nil
}
