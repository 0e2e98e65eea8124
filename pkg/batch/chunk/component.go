package chunk

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// component is an author's value, with the optional interfaces that every kind of component may have.
type component struct {
	value  any
	opener item.Opener
	closer item.Closer
	warner itemextra.Warner
}

func newComponent(value any) component {
	return component{value: value, opener: optional[item.Opener](value), closer: optional[item.Closer](value), warner: optional[itemextra.Warner](value)}
}

// sink is a writer, with its optional interfaces.
type sink struct {
	writer     item.Writer
	encoder    itemextra.Encoder
	locator    itemextra.Locator
	leftOuter  itemextra.LeftOuter
	completer  item.Completer
	tallier    itemextra.Tallier
	preparer   item.Preparer
	positioner item.Positioner
	rewinder   item.Rewinder
	releaser   item.Releaser
}

func newSink(w item.Writer) sink {
	c := w.Component()
	return sink{
		writer: w, encoder: optional[itemextra.Encoder](w), locator: optional[itemextra.Locator](w), leftOuter: optional[itemextra.LeftOuter](c), completer: optional[item.Completer](c), tallier: optional[itemextra.Tallier](c), preparer: optional[item.Preparer](c), positioner: optional[item.Positioner](c), rewinder: optional[item.Rewinder](c),
		releaser: optional[item.Releaser](c),
	}
}

// writesAhead reports whether the writer may write a chunk while the one before it commits.
func (s sink) writesAhead() bool {
	w := optional[itemextra.AheadWriter](s.writer.Component())
	return w != nil && s.encoder != nil && s.preparer != nil && s.positioner != nil && s.rewinder != nil && s.leftOuter == nil && w.WritesAhead()
}

// writeAhead writes an encoding, makes it durable, and returns the position after it; nil means that it
// is not written.
func (s sink) writeAhead(ctx context.Context, e item.Encoding) (at item.Position, err error) {
	if done, err := s.encoder.WriteEncoded(ctx, e); !done || err != nil {
		return nil, err
	}
	if err := s.preparer.Prepare(ctx); err != nil {
		return nil, err
	}
	return s.positioner.Position()
}

// sinks are the writers of a step, in order.
type sinks []sink

// release notifies the writers that a commit has stored their positions.
func (list sinks) release(ctx context.Context) error {
	for i, s := range list {
		if s.releaser == nil {
			continue
		}
		if err := guarded(func() error { return s.releaser.Release(ctx) }); err != nil {
			return fmt.Errorf("writer %d: %w", i+1, err)
		}
	}
	return nil
}

func optional[I any](value any) I {
	i, _ := value.(I)
	return i
}

// guarded calls a component and turns its panic into an error (rule C13).
func guarded(f func() error) error { return panics.Guard(f) }
