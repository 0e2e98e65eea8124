package jsonl

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// NewReader returns a reader of items of the type.
func NewReader(cfg ReaderConfig, item core.ItemType) (core.Reader, error) {
	item, err := itemOf(item)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("jsonl: %w", err)
	}
	if cfg.MaxLine == 0 {
		cfg.MaxLine = DefaultMaxLine
	}
	return item.FromDocuments(&reader{cfg: cfg})
}

// reader is the core.DocumentReader. Offsets are those of filestream.Input.
type reader struct {
	cfg  ReaderConfig
	in   *filestream.Input
	buf  *bufio.Reader
	long []byte // a line longer than buf
	next int64  // offset of the next line
	line int64  // of the last line
	dead error  // nothing can be read any more
}

// position is the reader's core.Position.
type position struct {
	filestream.InputPosition
	Line int64 `json:"line"`
}

// Meta returns where the last document is.
func (r *reader) Meta() core.Meta { return core.Meta{Path: r.cfg.Path, Line: r.line} }

// Open opens the file.
func (r *reader) Open(ctx context.Context, at core.Position) error {
	var pos position
	var from *filestream.InputPosition
	if at != nil {
		if err := json.Unmarshal(at, &pos); err != nil {
			return fmt.Errorf("jsonl: cannot restart: its position is not readable: %w", err)
		}
		from = &pos.InputPosition
	}
	in, err := filestream.OpenInput(ctx, filestream.InputConfig{
		Path: r.cfg.Path, Compression: r.cfg.Compression, Accept: core.ChangesAccepted(ctx), Lines: true,
	}, from)
	if err != nil {
		return fmt.Errorf("jsonl: %w", err)
	}
	r.in, r.buf = in, bufio.NewReaderSize(in, 64<<10)
	r.next, r.line = in.Start(), 0
	if at != nil {
		r.next, r.line = pos.Offset, pos.Line
	}
	return nil
}

// ReadDocument returns the next line that is not empty.
func (r *reader) ReadDocument(ctx context.Context) ([]byte, error) {
	switch {
	case r.in == nil:
		return nil, errors.New("jsonl: the reader is not open")
	case r.dead != nil:
		return nil, r.dead
	}
	for {
		line, size, err := r.readLine(ctx)
		if err != nil && (size == 0 || !errors.Is(err, io.EOF)) {
			return nil, err
		}
		r.next += size
		r.line++
		r.in.Keep(r.next)
		if line == nil {
			return nil, core.Consumed(r.Meta(), exception.InvalidItem("", exception.ClassParse,
				fmt.Errorf("the line has %d bytes, more than %d (max_line)", size, r.cfg.MaxLine)))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// readLine returns the next line and how many bytes it has; a nil line is one
// that is longer than allowed. A read that fails leaves the line to be read again.
func (r *reader) readLine(ctx context.Context) (line []byte, size int64, err error) {
	line, err = r.buf.ReadSlice('\n')
	size = int64(len(line))
	if errors.Is(err, bufio.ErrBufferFull) {
		r.long = append(r.long[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) && ctx.Err() == nil {
			line, err = r.buf.ReadSlice('\n')
			if size += int64(len(line)); size <= int64(r.cfg.MaxLine) {
				r.long = append(r.long, line...)
			} else {
				r.in.Keep(r.next + size) // bounds the memory: such a line is not read again
			}
		}
		line = r.long
	}
	if err != nil && !errors.Is(err, io.EOF) {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		err = fmt.Errorf("jsonl: %s:%d: %w", r.cfg.Path, r.line+1, err)
		if size > int64(r.cfg.MaxLine) {
			r.dead = err
			return nil, 0, err
		}
		r.in.Rewind(r.next)
		r.buf.Reset(r.in)
		return nil, 0, err
	}
	if size > int64(r.cfg.MaxLine) {
		line = nil
	}
	return line, size, err
}

// Position returns where the next line starts.
func (r *reader) Position() (core.Position, error) {
	if r.in == nil {
		return nil, errors.New("jsonl: the reader is not open")
	}
	return json.Marshal(position{InputPosition: r.in.Position(r.next), Line: r.line})
}

// Close closes the file.
func (r *reader) Close(context.Context) error {
	if r.in == nil {
		return nil
	}
	in := r.in
	r.in = nil
	return in.Close()
}
