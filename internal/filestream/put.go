package filestream

import (
	"context"
	"errors"
	"io"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Put writes a whole file in a place without locks, and begins at its first byte after a crash. commit comes between its two halves:
// it must fail if a later attempt has taken over.
func Put(ctx context.Context, path string, of func(context.Context) (core.Attempt, error), fill func(io.Writer) error, commit func(context.Context) error) (err error) {
	o := NewOutput(OutputConfig{Path: path, Compression: CompressionNone, Attempt: of})
	defer func() {
		if err != nil {
			o.named, o.requested = false, false // no position names the part
		}
		err = errors.Join(err, o.Close())
	}()
	if err := o.Open(ctx, nil); err != nil {
		return err
	}
	if err := fill(&merging{o: o, ctx: ctx}); err != nil {
		return err
	}
	if _, err := o.Stage(ctx); err != nil {
		return err
	}
	if err := commit(ctx); err != nil {
		return err
	}
	if err := o.Release(ctx); err != nil {
		return err
	}
	return o.Finish(ctx)
}

// merging bounds the pieces of a large file, as commits do.
type merging struct {
	o     *Output
	ctx   context.Context
	fresh int
}

const mergeAfter = 1 << 30

func (m *merging) Write(p []byte) (int, error) {
	n, err := m.o.Write(p)
	if m.fresh += n; err != nil || m.fresh < mergeAfter {
		return n, err
	}
	m.fresh = 0
	return n, errors.Join(m.o.Sync(), m.o.kept.part.Kept(m.ctx))
}
