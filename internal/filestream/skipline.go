package filestream

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Skipped returns the line that the last SkipLine skipped.
func (in *Input) Skipped() Skipped { return in.skipped }

// SkipLine skips the line at offset, however long, and returns the offset after it.
func (in *Input) SkipLine(ctx context.Context, offset int64) (int64, error) {
	in.Rewind(offset)
	in.skipped = Skipped{Offset: offset, Head: in.skipped.Head[:0]}
	for {
		rest := in.buf[in.pos:]
		end := in.lineEndIn(rest)
		if end < 0 {
			in.keepSkipped(rest)
		} else {
			in.keepSkipped(rest[:end])
			in.pos += end + 1
			in.dropReturn()
			if rest[end] == '\r' {
				if err := in.passFeed(); err != nil {
					return 0, err
				}
			}
			break
		}
		in.pos = len(in.buf)
		in.keep = in.base + int64(in.pos)
		in.compact()
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if n, err := in.fill(); n == 0 && err != nil {
			if !errors.Is(err, io.EOF) {
				return 0, err
			}
			break
		}
	}
	next := in.base + int64(in.pos)
	in.keep = next
	return next, nil
}

func (in *Input) keepSkipped(piece []byte) {
	s := &in.skipped
	s.Length += int64(len(piece))
	s.Head = append(s.Head, piece[:min(len(piece), item.MaxPayloadBytes-len(s.Head))]...)
}

func (in *Input) dropReturn() {
	s := &in.skipped
	if head, is := bytes.CutSuffix(s.Head, []byte{'\r'}); is && int64(len(s.Head)) == s.Length {
		s.Head, s.Length = head, s.Length-1
	}
}
