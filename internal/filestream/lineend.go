package filestream

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// EndsLinesWithCR reports whether the first 64 KB have a carriage return outside of quotes (0 means
// none), and no line feed. Call it before the first Read.
func (in *Input) EndsLinesWithCR(ctx context.Context, quote byte) (bool, error) {
	defer in.Rewind(in.first)
	for len(in.Buffered(in.first)) < headBytes {
		if err := in.More(ctx); ctx.Err() != nil {
			return false, ctx.Err()
		} else if err != nil { // the reading comes to it
			break
		}
	}
	text := in.Buffered(in.first)
	quoted, cr := false, false
	for i, c := range text[:min(headBytes, len(text))] {
		switch {
		case c == quote && quote != 0:
			quoted = !quoted
		case quoted:
		case c == '\n':
			return false, nil
		case c == '\r':
			cr = cr || i+1 < len(text) && text[i+1] != '\n'
		}
	}
	return cr, nil
}

// EndLinesWithCR makes SkipLine also end a line at a carriage return alone.
func (in *Input) EndLinesWithCR() { in.cr = true }

func (in *Input) lineEndIn(text []byte) int {
	if in.cr {
		return bytes.IndexAny(text, "\r\n")
	}
	return bytes.IndexByte(text, '\n')
}

func (in *Input) passFeed() error {
	if in.pos == len(in.buf) {
		in.keep = in.base + int64(in.pos)
		in.compact()
		if n, err := in.fill(); n == 0 && err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	if in.pos < len(in.buf) && in.buf[in.pos] == '\n' {
		in.pos++
	}
	return nil
}
