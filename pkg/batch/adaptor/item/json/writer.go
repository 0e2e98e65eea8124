package json

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"fmt"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// NewWriter returns a writer of items of the type use.In. The file belongs to
// use.Attempt (rule C15b).
func NewWriter(cfg WriterConfig, use core.Use) (core.Writer, error) {
	return use.In.ToDocuments(&writer{out: filestream.NewOutput(filestream.OutputConfig{
		Path: cfg.Path, Compression: cfg.Compression, Trailer: []byte("\n]\n"), Mode: use.FileMode, Attempt: use.Attempt,
	})})
}

// writer is the core.DocumentWriter.
type writer struct {
	out   *filestream.Output
	items int64 // in the file
	buf   bytes.Buffer
}

// writerPosition is the writer's core.Position.
type writerPosition struct {
	filestream.OutputPosition
	Items int64 `json:"items"`
}

// Open starts the file, or takes up what is committed.
func (w *writer) Open(ctx context.Context, at core.Position) error {
	return w.start(at, func(at *filestream.OutputPosition) error { return w.out.Open(ctx, at) })
}

// Rewind forgets what was written since at (core.Rewinder).
func (w *writer) Rewind(_ context.Context, at core.Position) error {
	return w.start(at, w.out.Rewind)
}

func (w *writer) start(at core.Position, place func(*filestream.OutputPosition) error) error {
	w.items = 0
	if at == nil {
		err := place(nil)
		if err == nil {
			_, err = w.out.Write([]byte("["))
		}
		if err != nil {
			return fmt.Errorf("json: %w", err)
		}
		return nil
	}
	var pos writerPosition
	if err := stdjson.Unmarshal(at, &pos); err != nil {
		return fmt.Errorf("json: cannot restart: its position is not readable: %w", err)
	}
	if err := place(&pos.OutputPosition); err != nil {
		return fmt.Errorf("json: %w", err)
	}
	w.items = pos.Items
	return nil
}

// WriteDocuments appends the elements.
func (w *writer) WriteDocuments(_ context.Context, docs [][]byte) error {
	w.buf.Reset()
	for i, doc := range docs {
		if w.items > 0 || i > 0 {
			w.buf.WriteByte(',')
		}
		w.buf.WriteByte('\n')
		w.buf.Write(doc)
	}
	if _, err := w.out.Write(w.buf.Bytes()); err != nil {
		return fmt.Errorf("json: %w", err)
	}
	w.items += int64(len(docs))
	return nil
}

// Prepare makes the chunk survive a crash.
func (w *writer) Prepare(context.Context) error {
	if err := w.out.Sync(); err != nil {
		return fmt.Errorf("json: %w", err)
	}
	return nil
}

// Position returns the end of the elements.
func (w *writer) Position() (core.Position, error) {
	return stdjson.Marshal(writerPosition{OutputPosition: w.out.Position(), Items: w.items})
}

// Release removes what earlier attempts left (core.Releaser).
func (w *writer) Release(context.Context) error {
	if err := w.out.Release(); err != nil {
		return fmt.Errorf("json: %w", err)
	}
	return nil
}

// Finish ends the array and renames the file into view.
func (w *writer) Finish(context.Context) error {
	if err := w.out.Finish(); err != nil {
		return fmt.Errorf("json: %w", err)
	}
	return nil
}

// Close closes the file.
func (w *writer) Close(context.Context) error { return w.out.Close() }
