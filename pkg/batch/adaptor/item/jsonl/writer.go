package jsonl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// NewWriter returns a writer of items of the type use.In. The file belongs to
// use.Attempt (rule C15b).
func NewWriter(cfg WriterConfig, use core.Use) (core.Writer, error) {
	return use.In.ToDocuments(&writer{out: filestream.NewOutput(filestream.OutputConfig{
		Path: cfg.Path, Compression: cfg.Compression, Mode: use.FileMode, Attempt: use.Attempt,
	})})
}

// writer is the core.DocumentWriter.
type writer struct {
	out *filestream.Output
	buf bytes.Buffer
}

// Open starts the file, or takes up what is committed.
func (w *writer) Open(ctx context.Context, at core.Position) error {
	return place(at, func(at *filestream.OutputPosition) error { return w.out.Open(ctx, at) })
}

// Rewind forgets what was written since at (core.Rewinder).
func (w *writer) Rewind(_ context.Context, at core.Position) error { return place(at, w.out.Rewind) }

func place(at core.Position, do func(*filestream.OutputPosition) error) error {
	var pos *filestream.OutputPosition
	if at != nil {
		pos = &filestream.OutputPosition{}
		if err := json.Unmarshal(at, pos); err != nil {
			return fmt.Errorf("jsonl: cannot restart: its position is not readable: %w", err)
		}
	}
	if err := do(pos); err != nil {
		return fmt.Errorf("jsonl: %w", err)
	}
	return nil
}

// WriteDocuments appends one line each. A document that is no JSON leaves the
// file as it was.
func (w *writer) WriteDocuments(_ context.Context, docs [][]byte) error {
	w.buf.Reset()
	for _, doc := range docs {
		if bytes.ContainsAny(doc, "\r\n") {
			if err := json.Compact(&w.buf, doc); err != nil {
				return exception.InvalidItem("jsonl", exception.ClassInvalidItem, err)
			}
		} else {
			w.buf.Write(doc)
		}
		w.buf.WriteByte('\n')
	}
	if _, err := w.out.Write(w.buf.Bytes()); err != nil {
		return fmt.Errorf("jsonl: %w", err)
	}
	return nil
}

// Prepare makes the chunk survive a crash.
func (w *writer) Prepare(context.Context) error {
	if err := w.out.Sync(); err != nil {
		return fmt.Errorf("jsonl: %w", err)
	}
	return nil
}

// Position returns the end of the file.
func (w *writer) Position() (core.Position, error) { return json.Marshal(w.out.Position()) }

// Release removes what earlier attempts left (core.Releaser).
func (w *writer) Release(context.Context) error {
	if err := w.out.Release(); err != nil {
		return fmt.Errorf("jsonl: %w", err)
	}
	return nil
}

// Finish renames the file into view.
func (w *writer) Finish(context.Context) error {
	if err := w.out.Finish(); err != nil {
		return fmt.Errorf("jsonl: %w", err)
	}
	return nil
}

// Close closes the file.
func (w *writer) Close(context.Context) error { return w.out.Close() }
