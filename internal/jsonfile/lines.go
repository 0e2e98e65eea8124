package jsonfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

const blanks = " \t\r\n"

type lines struct{}

func (lines) input(cfg *filestream.InputConfig, _ int64) { cfg.Lines = true }

func (lines) begin(context.Context, *Reader) error { return nil }

func (l lines) next(ctx context.Context, r *Reader) ([]byte, error) {
	for {
		line, err := r.in.Line(ctx, r.at.Offset, r.cfg.MaxLine)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				err = fmt.Errorf("%s:%d: %w", r.cfg.Path, r.at.Lines+1, err)
			}
			return nil, err
		}
		if line == nil {
			return nil, l.skip(ctx, r)
		}
		start := r.at.Offset
		r.moveLine(int64(len(line)))
		doc := bytes.TrimLeft(line, blanks)
		start += int64(len(line) - len(doc))
		if doc = bytes.TrimRight(doc, blanks); len(doc) > 0 {
			r.found(start, doc, 0)
			return doc, nil
		}
	}
}

func (r *Reader) moveLine(size int64) {
	r.at.Offset += size
	r.at.Lines++
	r.line = r.at.Lines
	r.in.Keep(r.at.Offset)
}

func (lines) skip(ctx context.Context, r *Reader) error {
	end, err := r.in.SkipLine(ctx, r.at.Offset)
	if err != nil { // some of it is no longer buffered, so that it cannot be read again
		r.dead = fmt.Errorf("%s:%d: %w", r.cfg.Path, r.at.Lines+1, err)
		return r.dead
	}
	r.moveLine(end - r.at.Offset)
	raw := r.in.Skipped().Raw()
	r.lost = &raw
	return r.tooLong(raw.Length, r.cfg.MaxLine)
}

func (r *Reader) tooLong(size, longest int64) error {
	return item.Consumed(r.Meta(), exception.InvalidItem("", exception.ClassParse,
		fmt.Errorf("the line has %d bytes, more than %d (max_line)", size, longest)))
}
