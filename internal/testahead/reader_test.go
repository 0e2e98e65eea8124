package testahead

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

type source struct {
	w      *world
	next   int
	last   int  // place of the item that was read last
	failed int  // place of the item that was consumed in vain
	peeked bool // the next item is known to be sound
}

func (r *source) Read(context.Context) (thing, error) {
	if err := r.look(); err != nil {
		return thing{}, err
	}
	r.last, r.peeked = r.next, false
	r.next++
	return thing{r.last}, nil
}

func (r *source) look() error {
	if r.peeked {
		return nil
	}
	if r.next >= r.w.s.Items {
		return io.EOF
	}
	err := r.w.meetItem(atRead, r.next)
	if err != nil && r.w.s.Reading == consumes {
		r.failed = r.next
		r.next++
		return item.Consumed(item.Meta{Path: "in", Line: int64(r.next)}, err)
	}
	return err
}

func (r *source) peek() error {
	err := r.look()
	if err == io.EOF { //nolint:errorlint // of look
		return nil
	}
	r.peeked = err == nil
	return err
}

func (r *source) Rereads() {}

func (r *source) Meta() item.Meta { return item.Meta{Path: "in", Line: int64(r.last + 1)} }

func (r *source) RawText() item.RawText {
	mustMeet(r.w.meet(atRawText))
	text := fmt.Sprintf("text %d", r.failed)
	return item.RawText{Text: text, Length: int64(len(text))}
}

// stepping is a source that can step over an item.
type stepping struct{ *source }

func (r stepping) SkipItem(context.Context) error {
	err := r.w.meet(atSkipItem)
	if err == nil {
		r.next++
	}
	return err
}

// positioned adds a position to a source.
type positioned struct{ *source }

func (r positioned) Open(_ context.Context, at item.Position) error {
	r.w.note("open %s", at)
	if at == nil {
		return nil
	}
	return json.Unmarshal(at, &r.next)
}

func (r positioned) Position() (item.Position, error) {
	if err := r.w.meet(atPosition); err != nil {
		return nil, err
	}
	return json.Marshal(r.next)
}

// marked is a source that can be opened after any item.
type marked struct{ positioned }

func (r marked) Mark() any {
	mustMeet(r.w.meetItem(atMark, r.last))
	return r.last + 1
}

func (r marked) PositionAt(mark any) (item.Position, error) {
	r.w.note("position at %v", mark)
	if err := r.w.meet(atPositionAt); err != nil {
		return nil, err
	}
	return json.Marshal(mark)
}

type (
	seeker interface {
		item.Opener
		item.Positioner
	}
	marker interface {
		seeker
		item.Marker
	}
)

func reader(w *world) item.Reader {
	r := &source{w: w}
	if w.s.Peeks {
		return peeking{erased(r), r}
	}
	return erased(r)
}

func erased(r *source) item.Reader {
	at := positioned{r}
	if r.w.s.Reading != stepsOver {
		switch r.w.s.Restart {
		case seeks:
			return item.EraseReader[thing](at)
		case marks:
			return item.EraseReader[thing](marked{at})
		default:
			return item.EraseReader[thing](r)
		}
	}
	type (
		seeking struct {
			stepping
			seeker
		}
		marking struct {
			stepping
			marker
		}
	)
	switch r.w.s.Restart {
	case seeks:
		return item.EraseReader[thing](seeking{stepping{r}, at})
	case marks:
		return item.EraseReader[thing](marking{stepping{r}, marked{at}})
	default:
		return item.EraseReader[thing](stepping{r})
	}
}

// peeking is a reader that reads one more item than requested. It returns that item's error together with the
// requested items.
type peeking struct {
	item.Reader
	source *source
}

func (r peeking) Fill(ctx context.Context, items item.Items, n int) error {
	if err := r.Reader.Fill(ctx, items, n); err != nil {
		return err
	}
	return r.source.peek()
}
