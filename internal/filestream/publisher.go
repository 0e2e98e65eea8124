package filestream

import (
	"context"
	"fmt"
)

// Publisher is embedded in the writers of files: they write and return positions, it publishes.
type Publisher struct {
	By  string // the name of the writer, in errors
	Out *Output
}

// NewPublisher returns one with an output that is not open yet.
func NewPublisher(by string, cfg OutputConfig) Publisher { return Publisher{by, NewOutput(cfg)} }

// Named adds the name of the writer to an error; nil stays nil.
func (p Publisher) Named(err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", p.By, err)
	}
	return nil
}

// WritesAhead implements itemextra.AheadWriter: content beyond the committed position is only in the part, which Open
// and Rewind cut back.
func (p Publisher) WritesAhead() bool { return p.Out.file != nil && p.Out.cfg.Maker == nil }

// Prepare implements item.Preparer.
func (p Publisher) Prepare(context.Context) error { return p.Named(p.Out.Sync()) }

// Release implements item.Releaser.
func (p Publisher) Release(ctx context.Context) error { return p.Named(p.Out.Release(ctx)) }

// Stage implements itemextra.Stager.
func (p Publisher) Stage(ctx context.Context) (bool, error) {
	staged, err := p.Out.Stage(ctx)
	return staged, p.Named(err)
}

// Finish implements item.Finisher.
func (p Publisher) Finish(ctx context.Context) error { return p.Named(p.Out.Finish(ctx)) }

// Close implements item.Closer.
func (p Publisher) Close(context.Context) error { return p.Named(p.Out.Close()) }
