package testahead

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type processor struct {
	w           *world
	number      int
	independent bool
}

func (p processor) IndependentOf(string) bool { return p.independent }

func (p processor) Process(_ context.Context, it thing) (thing, error) {
	if p.number == 0 {
		if err := p.w.meetItem(atProcess, it.Place); err != nil {
			return it, err
		}
	}
	if it.Place%len(p.w.s.Processors) == p.number && p.w.s.filters(it.Place) {
		return it, item.ErrFilter
	}
	return it, nil
}

type target struct {
	run    int
	insert string
	files  [][]int // places, by writer
	folder string  // of other files
}

func writer(w *world, n int) item.Writer {
	o := w.s.Outputs[n]
	var out item.Writer
	switch o.Form {
	case file:
		switch {
		case o.As != inMemory:
			out = newShipped(w, n)
		case o.Beyond:
			out = item.EraseWriter[thing](beyondWriter{fileWriter{w, n}})
		default:
			out = item.EraseWriter[thing](fileWriter{w, n})
		}
	case completing:
		out = item.EraseWriter[thing](completingWriter{tableWriter{w, n}})
	default:
		out = item.EraseWriter[thing](tableWriter{w, n})
	}
	if o.Encodes {
		return &encoder{out, w, n}
	}
	return out
}

// tableWriter inserts into the table, in a transaction that must exist. A fault of the first writer comes
// before the row of its item, a fault of the others after it.
type tableWriter struct {
	w *world
	n int
}

func (t tableWriter) Write(ctx context.Context, items []thing) error {
	t.w.note("write %d %v", t.n, items)
	for _, it := range items {
		failure := t.w.meetWrite(t.n, it.Place, len(items))
		if failure != nil && t.n == 0 {
			return failure
		}
		if err := t.insert(ctx, it.Place); err != nil {
			return err
		}
		if failure != nil {
			return failure
		}
	}
	return nil
}

func (t tableWriter) insert(ctx context.Context, place int) error {
	current, ok := tx.From(ctx, t.w.db.Name())
	if !ok {
		return errors.New("the writer was called without a transaction")
	}
	_, err := current.Conn().ExecContext(ctx, t.w.target.insert, t.w.target.run, t.n, place)
	return err
}

type completingWriter struct{ tableWriter }

func (t completingWriter) Complete(ctx context.Context) error {
	t.w.note("complete %d", t.n)
	if err := t.w.meet(atComplete); err != nil {
		return err
	}
	return t.insert(ctx, noItem)
}

const noItem = -1

type fileWriter struct {
	w *world
	n int
}

func (f fileWriter) list() *[]int { return &f.w.target.files[f.n] }

func (f fileWriter) cutTo(at item.Position) error {
	length := 0
	if at != nil {
		if err := json.Unmarshal(at, &length); err != nil {
			return err
		}
	}
	list := f.list()
	if length > len(*list) {
		return fmt.Errorf("the file has %d items, not %d", len(*list), length)
	}
	*list = (*list)[:length]
	return nil
}

func (f fileWriter) Open(_ context.Context, at item.Position) error { return f.cutTo(at) }

func (f fileWriter) Write(_ context.Context, items []thing) error {
	f.w.note("write %d %v", f.n, items)
	for _, it := range items {
		if err := f.w.meetWrite(f.n, it.Place, len(items)); err != nil {
			return err
		}
		*f.list() = append(*f.list(), it.Place)
	}
	return nil
}

func (f fileWriter) Prepare(context.Context) error { return f.w.meet(atPrepare) }

func (f fileWriter) Position() (item.Position, error) {
	if err := f.w.meet(atWriterPosition); err != nil {
		return nil, err
	}
	return json.Marshal(len(*f.list()))
}

func (f fileWriter) Rewind(_ context.Context, at item.Position) error {
	f.w.note("rewind %d %s", f.n, at)
	if err := f.w.meet(atRewind); err != nil {
		return err
	}
	return f.cutTo(at)
}

func (f fileWriter) Release(context.Context) error {
	f.w.note("release %d", f.n)
	return f.w.meet(atRelease)
}

func (f fileWriter) Finish(context.Context) error {
	f.w.note("finish %d", f.n)
	return f.w.meet(atFinish)
}

func (f fileWriter) Close(context.Context) error {
	f.w.note("close %d", f.n)
	return nil
}

// beyondWriter is a fileWriter that may write a chunk before its turn: it is asked without a transaction
// then. Only writes in its turn meet faults, and are in the trace.
type beyondWriter struct{ fileWriter }

var errBeyond = errors.New("written half before its turn")

func (b beyondWriter) WritesAhead() bool {
	return !slices.ContainsFunc(b.w.faults, func(f fault) bool {
		return f.At == atPrepare || f.At == atWriterPosition || f.At == atRewind
	})
}

func (b beyondWriter) Write(ctx context.Context, items []thing) error {
	_, inTurn := tx.From(ctx, b.w.db.Name())
	for i, it := range items {
		if inTurn {
			if err := b.w.meetWrite(b.n, it.Place, len(items)); err != nil {
				return err
			}
		} else if i == len(items)/2 && b.fails(items) {
			return errBeyond
		}
		*b.list() = append(*b.list(), it.Place)
	}
	return nil
}

// fails reports whether a fault might happen in turn, or would count the calls.
func (b beyondWriter) fails(items []thing) bool {
	return slices.ContainsFunc(b.w.faults, func(f fault) bool {
		return f.At == atWrite && (f.Call > 0 || f.Place == anyPlace || slices.Contains(items, thing{f.Place}))
	})
}

func (b beyondWriter) Rewind(_ context.Context, at item.Position) error {
	if err := b.w.meet(atRewind); err != nil {
		return err
	}
	return b.cutTo(at)
}

// encoder is a writer with chunks that may be encoded ahead. The third one encodes as it writes.
type encoder struct {
	item.Writer
	w *world
	n int
}

func (e *encoder) NewEncoding() item.Encoding {
	if e.n == 2 {
		return nil
	}
	c := &encoding{each: e.w.s.UnencodableEach}
	if s, is := e.Writer.(*shippedWriter); is {
		c.inner = s.NewEncoding()
	}
	return c
}

func (e *encoder) WriteEncoded(ctx context.Context, of item.Encoding) (done bool, err error) {
	items := of.(*encoding).items
	if each := e.w.s.StaleEach; each > 0 && items[0].Place%each == 0 {
		return false, nil
	}
	if s, is := e.Writer.(*shippedWriter); is {
		return s.writeEncoded(ctx, of.(*encoding))
	}
	return true, e.Write(ctx, &item.Slice[thing]{Items: items})
}

type encoding struct {
	items []thing
	each  int
	inner item.Encoding // of a shippedWriter
}

var errEncode = errors.New("the item cannot be encoded")

func (c *encoding) Encode(items item.Items) error {
	c.items = c.items[:0]
	for i := range items.Len() {
		it := items.At(i).(thing)
		if c.each > 0 && it.Place%c.each == 0 {
			switch it.Place % 3 {
			case 0:
				return errEncode
			case 1:
				panic(errEncode)
			default:
				runtime.Goexit()
			}
		}
		c.items = append(c.items, it)
	}
	if c.inner != nil {
		return c.inner.Encode(items)
	}
	return nil
}
