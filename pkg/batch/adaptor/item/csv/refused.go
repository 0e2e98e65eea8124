package csv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/surfin-batch/surfin/internal/filestream"
)

func (r *reader) refused(ctx context.Context, length int64, err error) (string, error) {
	var wrong *scanError
	switch {
	case err == nil, errors.Is(err, filestream.ErrTooLong), errors.As(err, &wrong) && length > int64(r.cfg.MaxLine):
		if skipped, err := r.skipEmptyLines(ctx); skipped || err != nil {
			return r.again(ctx, err)
		}
		return "", r.giveUpLine(ctx, r.lines+1, fmt.Errorf("the record is longer than %d bytes (max_line); is a quote not closed?", r.cfg.MaxLine))
	case wrong != nil:
		first := r.lines + int64(r.csv.before) + 1
		if wrong.line > 1 {
			err := fmt.Errorf("a quoted field is malformed at line %d, character %d: %w%s", first+int64(wrong.line)-1, characterOf(r, wrong), wrong.err, wrong.hintBelow())
			return "", r.giveUpLine(ctx, first, malformed(r, int(length), err))
		}
		r.line, r.lines = first, first
		r.consumed(r.next + length)
		return "", r.invalid(malformed(r, wrong.column, fmt.Errorf("character %d: %w%s", characterOf(r, wrong), wrong.err, wrong.hint)))
	case errors.Is(err, io.EOF):
		return "", err
	}
	return "", fmt.Errorf("csv: %s:%d: %w", r.cfg.Path, r.lines+1, err)
}

// Skipped lines do not count to the record's length.
func (r *reader) skipEmptyLines(ctx context.Context) (skipped bool, err error) {
	offset, lines := r.next, r.lines
	for {
		rest := r.in.Buffered(offset)
		if !beginsEmpty(r, rest) && (r.cfg.Comment == "" || !bytes.HasPrefix(rest, []byte(r.cfg.Comment))) {
			break
		}
		if offset, err = r.in.SkipLine(ctx, offset); err != nil {
			r.dead = fmt.Errorf("csv: %s:%d: %w", r.cfg.Path, lines+1, err)
			return false, r.dead
		}
		lines++
	}
	if lines == r.lines {
		return false, nil
	}
	r.rewindTo(offset, lines)
	return true, nil
}

func beginsEmpty(r *reader, text []byte) bool {
	return !r.csv.blanks && (bytes.HasPrefix(text, []byte("\n")) || bytes.HasPrefix(text, []byte("\r\n")) || r.cr && bytes.HasPrefix(text, []byte("\r")))
}

func (r *reader) again(ctx context.Context, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return r.record(ctx)
}

// giveUpLine skips one line, so that a stray quote costs one line and not the text up to the next quote.
func (r *reader) giveUpLine(ctx context.Context, first int64, cause error) error {
	offset := r.next
	for line := r.lines + 1; line <= first; line++ {
		var err error
		if offset, err = r.in.SkipLine(ctx, offset); err != nil {
			r.dead = fmt.Errorf("csv: %s:%d: %w", r.cfg.Path, line, err)
			return r.dead
		}
	}
	r.line = first
	raw := r.in.Skipped().Raw()
	r.rewindTo(offset, first)
	r.lost = &raw
	return r.invalid(cause)
}
