package chunk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// addStates finds the processors with a position, and refuses settings that they exclude.
func (f *filler) addStates(processors []item.Processor) error {
	for i, p := range processors {
		value := p.Component()
		s := state{
			number: i + 1, positioner: optional[item.Positioner](value), opener: optional[item.Opener](value),
			rewinder: optional[item.Rewinder](value), closer: optional[item.Closer](value),
		}
		if s.positioner == nil {
			continue
		}
		switch c := f.step.config; {
		case s.opener == nil:
			return fmt.Errorf("processor %d implements Position but not Open, which restores it at a restart", s.number)
		case c.Concurrency > 1:
			return fmt.Errorf("processor %d has a position, which depends on the order of the items: set concurrency to 1", s.number)
		case c.KeepOutputs:
			return fmt.Errorf("processor %d has a position, but reprocess: false keeps its outputs without their positions: set reprocess: true", s.number)
		}
		f.states = append(f.states, s)
	}
	return nil
}

// openStates checks that a stored position includes all processors with a position.
func (f *filler) openStates(at position, committed bool) error {
	for _, s := range f.states {
		if committed && s.number > len(at.Processors) {
			return fmt.Errorf("processor %d has a position, but the last commit stored none for it: an earlier version of surfin or of the processor made that commit. The processor's state is lost; --from-start processes all items again", s.number)
		}
	}
	f.committed = at.Processors
	return nil
}

// statePositions returns the positions of all processors in order; nil if none has one.
func (f *filler) statePositions() ([]json.RawMessage, error) {
	var list []json.RawMessage
	for _, s := range f.states {
		var at item.Position
		if err := guarded(func() (err error) { at, err = s.positioner.Position(); return err }); err != nil {
			return nil, fmt.Errorf("position of processor %d: %w", s.number, err)
		}
		for len(list) < s.number {
			list = append(list, json.RawMessage("null"))
		}
		list[s.number-1] = at.JSON()
	}
	return list, nil
}

// seek restores the processors to the state after the unskipped items before an index: to their last
// position and over the items since. It does nothing if they are there.
func (f *filler) seek(ctx context.Context, w *work, place int) error {
	if len(f.states) == 0 || w.stateAt == place {
		return nil
	}
	reopened := w.stateAt < w.committedItems || w.stateAt > place
	if reopened {
		from, at := w.committedItems, f.committed
		if s := w.savepoint; s != nil && s.place >= from && s.place <= place {
			from, at = s.place, s.at
		}
		if err := f.reopen(ctx, at); err != nil {
			return &fatalError{err}
		}
		w.stateAt = from
	}
	replayed := w.stateAt < place
	if err := f.replay(ctx, w, place); err != nil {
		return &fatalError{err}
	}
	if !reopened || !replayed {
		return nil
	}
	at, err := f.statePositions()
	if err != nil {
		return &fatalError{err}
	}
	w.savepoint = &savepoint{place, at}
	return nil
}

func (f *filler) reopen(ctx context.Context, at []json.RawMessage) error {
	for _, s := range f.states {
		to := (&position{Processors: at}).processor(s.number - 1)
		err := guarded(func() error {
			if s.rewinder != nil {
				return s.rewinder.Rewind(ctx, to)
			}
			if s.closer != nil {
				if err := s.closer.Close(context.WithoutCancel(ctx)); err != nil {
					return err
				}
			}
			return s.opener.Open(ctx, to)
		})
		if err != nil {
			return fmt.Errorf("reset processor %d to its last position: %w", s.number, err)
		}
	}
	return nil
}

// replay gives the processors already processed items again, to restore their state.
func (f *filler) replay(ctx context.Context, w *work, upTo int) error {
	c := f.chains[0]
	for i := w.stateAt; i < upTo; i++ {
		w.stateAt = dirty
		if w.verdicts[i] != skipped {
			err := guarded(func() error { w.items.Load(i, c.in); return c.move(ctx) })
			if err != nil && !errors.Is(err, item.ErrFilter) {
				return &processError{place: i, meta: w.items.Meta(i), err: fmt.Errorf("passed again to a processor with a position: %w", err)}
			}
		}
		w.stateAt = i + 1
	}
	return nil
}

// rebase makes the current item the first one after a commit, for a sample.
func (f *filler) rebase(ctx context.Context, w *work) (err error) {
	if len(f.states) == 0 {
		return nil
	}
	if w.stateAt == dirty {
		if err := f.reopen(ctx, f.committed); err != nil {
			return err
		}
	}
	w.stateAt, w.savepoint = 0, nil
	f.committed, err = f.statePositions()
	return err
}
