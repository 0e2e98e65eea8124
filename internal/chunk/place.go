package chunk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// withOrigin adds the item's origin to the failure of a write, which ends the step. If the target did not
// identify the item, the writer searches for it in a transaction that is rolled back.
func (p *pipeline) withOrigin(ctx context.Context, w *work, err error) error {
	var known *item.PlacedError
	if errors.As(err, &known) {
		return withOriginAt(known.Meta, err)
	}
	var write *writeError
	var commit *tx.CommitError
	if !errors.As(err, &write) || errors.As(err, &commit) || isFatal(ctx, err) || errors.Is(err, tx.ErrNotBegun) || p.step.config.ProcessInTransaction || len(p.sinks) != 1 {
		return err
	}
	counted := p.rollbackCounted // the transaction of the search is not a rollback of the chunk
	defer func() { p.rollbackCounted = counted }()
	locator := p.sinks[0].locator
	if locator == nil || w.output == nil || w.output.Len() == 0 || p.rewindWriters(ctx) != nil {
		return err
	}
	place, found := 0, false
	probe := p.step.tx.Do(ctx, p.step.config.Attr, func(ctx context.Context) error {
		if located := guarded(func() error { place, found = locator.Locate(ctx, w.output, err); return nil }); located != nil {
			return located
		}
		return errProbed
	})
	if !errors.Is(probe, errProbed) || !found {
		return err
	}
	return withOriginAt(w.output.Meta(place), err)
}

// errProbed rolls back the writes of the search for an item.
var errProbed = errors.New("the chunk was split to find the item that cannot be written")

func withOriginAt(meta item.Meta, err error) error {
	where := meta.String()
	if where == "" {
		return err
	}
	if meta.Path == "" && meta.Line > 0 {
		where = fmt.Sprintf("item %d", meta.Line)
	}
	return &originError{item.PlacedError{Meta: meta, Err: err}, where}
}

// originError is a failure with the origin of its item.
type originError struct {
	item.PlacedError
	where string
}

func (e *originError) Error() string {
	text := e.Err.Error()
	if cause, ok := strings.CutPrefix(text, "write: "); ok {
		return "write " + e.where + ": " + cause
	}
	return e.where + ": " + text
}

func (e *originError) Unwrap() error { return &e.PlacedError }
