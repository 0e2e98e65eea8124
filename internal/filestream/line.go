package filestream

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Line returns the line at offset, with its end; nil if it is longer than longest: SkipLine skips
// it. The last line may have no end; io.EOF follows it. The input must have no Max, and keep the
// text from offset on. The line is invalid after the next call.
func (in *Input) Line(ctx context.Context, offset, longest int64) ([]byte, error) {
	for searched := 0; ; {
		text := in.Buffered(offset)
		end := bytes.IndexByte(text[searched:], '\n') + 1
		if end > 0 {
			end += searched
		}
		if searched = len(text); end == 0 && int64(searched) <= longest+lineEnd {
			err := in.More(ctx)
			if err == nil {
				continue
			}
			if !errors.Is(err, io.EOF) || searched == 0 {
				return nil, err
			}
			text, end = in.Buffered(offset), searched
		}
		if end == 0 || int64(len(WithoutEnd(text[:end]))) > longest {
			return nil, nil
		}
		return text[:end], nil
	}
}

const lineEnd = int64(len("\r\n"))

// WithoutEnd returns a line without its end.
func WithoutEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// Record returns the size bytes at offset; fewer at the end of the file, and io.EOF after it. The
// input must have no Max, and keep the text from offset on. The bytes are invalid after the next
// call.
func (in *Input) Record(ctx context.Context, offset int64, size int) ([]byte, error) {
	for {
		text := in.Buffered(offset)
		if len(text) >= size {
			return text[:size], nil
		}
		if err := in.More(ctx); err != nil {
			if errors.Is(err, io.EOF) && len(text) > 0 {
				return text, nil
			}
			return nil, err
		}
	}
}

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
