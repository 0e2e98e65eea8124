package itemtest

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// WriterConfig configures how to make and check a writer.
type WriterConfig struct {
	// New returns a new unopened writer onto the same target.
	New func(t testing.TB) item.Writer
	// Chunks returns new items at each call, at least two chunks. See [Chunks].
	Chunks func(t testing.TB) []item.Items
	// Contents returns the target as others see it, or "".
	Contents func(t testing.TB) string
	// Clear removes the target and all leftovers.
	Clear func(t testing.TB)
	// Want is the final Contents; "" means as in the first pass.
	Want string
	// Hidden: nothing is visible before Finish.
	Hidden bool
	// NewFor is New for an attempt; nil if attempts are not distinguished.
	NewFor func(t testing.TB, attempt core.Attempt) item.Writer
	// In runs f in a transaction of the target, which commits if f returns nil; nil means outside
	// transactions.
	In func(t testing.TB, f func(ctx context.Context) error) error
	// Context is for Open; nil means an empty one.
	Context context.Context
	// Lose destroys data that a restart needs, so that it must be refused; may be nil.
	Lose func(t testing.TB)
}

// Chunks makes items of slices.
func Chunks[T any](chunks ...[]T) []item.Items {
	out := make([]item.Items, len(chunks))
	for i, chunk := range chunks {
		out[i] = &item.Slice[T]{Items: append([]T(nil), chunk...)}
	}
	return out
}

// Writer checks the contract of a writer: wherever it is cut off, a restart at the last committed position
// writes the same target; Finish may be called again, also after a crash; Rewind forgets a chunk, and a
// cancelled write; an attempt that wakes after its successor has finished changes nothing; Close works in
// every state.
func Writer(t *testing.T, cfg WriterConfig) {
	t.Helper()
	c := &writerCheck{WriterConfig: cfg, chunks: len(cfg.Chunks(t))}
	if c.chunks < 2 {
		t.Fatalf("itemtest needs at least two chunks, got %d", c.chunks)
	}
	t.Run("writes all chunks", c.writesAll)
	if t.Failed() {
		return
	}
	t.Run("cut off anywhere, a restart writes the same", c.resumes)
	t.Run("finishes again after a crash", c.finishesAgain)
	t.Run("finishes without items", c.finishesEmpty)
	t.Run("rewinds to the last commit", c.rewinds)
	t.Run("forgets a cancelled write", c.cancelled)
	t.Run("can be closed at any time", c.closes)
	if c.NewFor != nil {
		t.Run("an attempt that wakes up changes nothing", c.wakes)
	}
	if c.Lose != nil {
		t.Run("refuses to restart without the committed data", c.refusesLoss)
	}
}

func (c *writerCheck) open(component any, at item.Position) error {
	ctx := context.Background()
	if c.Context != nil {
		ctx = c.Context
	}
	return openIn(ctx, component, at)
}

type writerCheck struct {
	WriterConfig
	chunks int
	want   string
}

func (c *writerCheck) opened(t testing.TB, at item.Position) item.Writer {
	t.Helper()
	w := c.New(t)
	if err := c.open(w.Component(), at); err != nil {
		shut(t, w.Component())
		t.Fatalf("Open at %s: %v", at, err)
	}
	return w
}

var errCut = errors.New("cut off")

func (c *writerCheck) in(t testing.TB, f func(ctx context.Context) error) error {
	t.Helper()
	if c.In == nil {
		return f(context.Background())
	}
	return c.In(t, f)
}

func (c *writerCheck) lose(t testing.TB, f func(ctx context.Context)) {
	t.Helper()
	if err := c.in(t, func(ctx context.Context) error { f(ctx); return errCut }); !errors.Is(err, errCut) {
		t.Fatalf("a transaction that is cut off ends with %v", err)
	}
}

// The items are void afterwards, as in the engine.
func (c *writerCheck) write(ctx context.Context, t testing.TB, w item.Writer, i int) {
	t.Helper()
	items := c.Chunks(t)[i]
	if err := w.Write(ctx, items); err != nil {
		t.Fatalf("Write of chunk %d: %v", i+1, err)
	}
	items.Reset()
}

func prepare(ctx context.Context, t testing.TB, w item.Writer) {
	t.Helper()
	if p, ok := w.Component().(item.Preparer); ok {
		if err := p.Prepare(ctx); err != nil {
			t.Fatalf("Prepare: %v", err)
		}
	}
}

func (c *writerCheck) commit(t testing.TB, w item.Writer, i int) (at item.Position) {
	t.Helper()
	c.committed(t, func(ctx context.Context) {
		c.write(ctx, t, w, i)
		prepare(ctx, t, w)
		at = position(t, w.Component())
	})
	return at
}

func (c *writerCheck) committed(t testing.TB, f func(ctx context.Context)) {
	t.Helper()
	if err := c.in(t, func(ctx context.Context) error { f(ctx); return nil }); err != nil {
		t.Fatalf("Commit: %v", err)
	}
}

func release(t testing.TB, w item.Writer) {
	t.Helper()
	if r, ok := w.Component().(item.Releaser); ok {
		if err := r.Release(context.Background()); err != nil {
			t.Fatalf("Release: %v", err)
		}
	}
}

func (c *writerCheck) seal(t testing.TB, w item.Writer) (at item.Position) {
	t.Helper()
	c.committed(t, func(ctx context.Context) {
		if f, ok := w.Component().(item.Completer); ok {
			if err := f.Complete(ctx); err != nil {
				t.Fatalf("Complete: %v", err)
			}
		}
		prepare(ctx, t, w)
		at = position(t, w.Component())
	})
	release(t, w)
	return at
}

func (c *writerCheck) finish(t testing.TB, w item.Writer) item.Position {
	t.Helper()
	at := c.seal(t, w)
	at = c.staged(t, w, at)
	if f, ok := w.Component().(item.Finisher); ok {
		if err := f.Finish(context.Background()); err != nil {
			t.Fatalf("Finish: %v", err)
		}
	}
	return at
}

func (c *writerCheck) staged(t testing.TB, w item.Writer, at item.Position) item.Position {
	t.Helper()
	staged, err := itemextra.Stage(context.Background(), w.Component())
	if err != nil {
		t.Fatalf("Stage: %v", err)
	}
	if staged {
		at = position(t, w.Component())
		release(t, w)
	}
	return at
}

func (c *writerCheck) expect(t testing.TB, what string) {
	t.Helper()
	if got := c.Contents(t); got != c.want {
		t.Fatalf("%s: the target holds\n%.2000q\nwant\n%.2000q", what, got, c.want)
	}
}

func (c *writerCheck) writesAll(t *testing.T) {
	c.Clear(t)
	before := c.Contents(t)
	w := c.opened(t, nil)
	for i := range c.chunks {
		c.commit(t, w, i)
		if c.Hidden && c.Contents(t) != before {
			t.Fatalf("chunk %d is visible before Finish", i+1)
		}
	}
	c.finish(t, w)
	shut(t, w.Component())
	if c.want = c.Want; c.want == "" {
		c.want = c.Contents(t)
	}
	c.expect(t, "written in one go")
}

func (c *writerCheck) resumes(t *testing.T) {
	cuts := []struct {
		name string
		do   func(ctx context.Context, w item.Writer, i int)
	}{
		{"after the commit", func(context.Context, item.Writer, int) {}},
		{"after the next Write", func(ctx context.Context, w item.Writer, i int) { c.write(ctx, t, w, i) }},
		{"after the next Prepare", func(ctx context.Context, w item.Writer, i int) { c.write(ctx, t, w, i); prepare(ctx, t, w) }},
	}
	for committed := 0; committed < c.chunks; committed++ {
		for _, cut := range cuts {
			c.Clear(t)
			w := c.opened(t, nil)
			var at item.Position
			for i := range committed {
				at = c.commit(t, w, i)
			}
			c.lose(t, func(ctx context.Context) { cut.do(ctx, w, committed) })
			shut(t, w.Component())

			w = c.opened(t, at)
			for i := committed; i < c.chunks; i++ {
				c.commit(t, w, i)
			}
			c.finish(t, w)
			shut(t, w.Component())
			c.expect(t, "cut off "+cut.name+" of chunk "+itoa(committed))
		}
	}
}

func (c *writerCheck) finishesAgain(t *testing.T) {
	c.Clear(t)
	w := c.opened(t, nil)
	for i := range c.chunks {
		c.commit(t, w, i)
	}
	at := c.finish(t, w)
	c.finish(t, w)
	shut(t, w.Component())
	c.expect(t, "finished twice")
	for range 2 {
		w = c.opened(t, at)
		c.finish(t, w)
		shut(t, w.Component())
		c.expect(t, "finished again after a crash")
	}
}

func (c *writerCheck) finishesEmpty(t *testing.T) {
	c.Clear(t)
	w := c.opened(t, nil)
	c.finish(t, w)
	shut(t, w.Component())
	empty := c.Contents(t)
	w = c.opened(t, nil)
	c.finish(t, w)
	shut(t, w.Component())
	if got := c.Contents(t); got != empty {
		t.Fatalf("run again without items the target holds %q, before %q", got, empty)
	}
}

// wakes freezes an attempt after each commit, after the next Prepare and before Finish, lets its successor
// write the target, and wakes it.
func (c *writerCheck) wakes(t *testing.T) {
	for committed := 0; committed <= c.chunks; committed++ {
		for _, prepared := range []bool{false, true} {
			if prepared && committed == c.chunks {
				continue
			}
			c.Clear(t)
			frozen := c.attempt(t, 1, nil)
			var at item.Position
			for i := range committed {
				at = c.commit(t, frozen, i)
				release(t, frozen)
			}
			if prepared {
				c.commit(t, frozen, committed)
			}
			if committed == c.chunks {
				at = c.seal(t, frozen)
			}

			next := c.attempt(t, 2, at)
			for i := committed; i < c.chunks; i++ {
				c.commit(t, next, i)
			}
			c.finish(t, next)
			shut(t, next.Component())
			c.expect(t, "an attempt was frozen after chunk "+itoa(committed)+", and its successor finished")

			c.wake(t, frozen, at)
			c.expect(t, "the attempt that was frozen after chunk "+itoa(committed)+" woke")
		}
	}
}

// Only the first attempt has exclusive use of the target.
func (c *writerCheck) attempt(t testing.TB, id core.StepExecutionID, at item.Position) item.Writer {
	t.Helper()
	w := c.NewFor(t, core.Attempt{Repository: "itemtest", Instance: 1, Step: "step", ID: id, Exclusive: id == 1})
	if err := c.open(w.Component(), at); err != nil {
		shut(t, w.Component())
		t.Fatalf("Open of attempt %d at %s: %v", id, at, err)
	}
	return w
}

// The calls may succeed or fail, except Finish, which must not succeed.
func (c *writerCheck) wake(t testing.TB, w item.Writer, at item.Position) {
	t.Helper()
	defer shut(t, w.Component())
	note := func(what string, err error) {
		if err != nil {
			t.Logf("%s: %v", what, err)
		}
	}
	ctx := context.Background()
	if r, ok := w.Component().(item.Rewinder); ok {
		note("Rewind", r.Rewind(ctx, at))
	}
	note("Write", w.Write(ctx, c.Chunks(t)[0]))
	if p, ok := w.Component().(item.Preparer); ok {
		note("Prepare", p.Prepare(ctx))
	}
	if _, err := itemextra.Stage(ctx, w.Component()); err != nil {
		t.Logf("Stage: %v", err)
	}
	if f, ok := w.Component().(item.Finisher); ok {
		if err := f.Finish(ctx); err == nil {
			t.Errorf("Finish of an attempt whose successor has finished succeeded")
		}
	}
}

func (c *writerCheck) rewinds(t *testing.T) {
	c.Clear(t)
	w := c.opened(t, nil)
	defer shut(t, w.Component())
	r, ok := w.Component().(item.Rewinder)
	if !ok {
		t.Skip("it is not an item.Rewinder")
	}
	var at item.Position
	for i := range c.chunks {
		c.lose(t, func(ctx context.Context) { c.write(ctx, t, w, i) })
		c.rewind(t, r, at)
		c.lose(t, func(ctx context.Context) {
			c.write(ctx, t, w, i)
			prepare(ctx, t, w)
			position(t, w.Component())
		})
		c.rewind(t, r, at)
		at = c.commit(t, w, i)
	}
	c.finish(t, w)
	c.expect(t, "each chunk rolled back twice")
}

func (c *writerCheck) rewind(t testing.TB, r item.Rewinder, at item.Position) {
	t.Helper()
	if err := r.Rewind(context.Background(), at); err != nil {
		t.Fatalf("Rewind to %s: %v", at, err)
	}
}

func (c *writerCheck) cancelled(t *testing.T) {
	c.Clear(t)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	w := c.opened(t, nil)
	var at item.Position
	for i := range c.chunks {
		_ = c.in(t, func(ctx context.Context) error { //nolint:errcheck // it may work or fail
			stopped, cancel := context.WithCancel(ctx)
			cancel()
			return errors.Join(w.Write(stopped, c.Chunks(t)[i]), errCut)
		})
		if r, ok := w.Component().(item.Rewinder); ok {
			c.rewind(t, r, at)
		} else if c.In == nil {
			shut(t, w.Component())
			w = c.opened(t, at)
		}
		at = c.commit(t, w, i)
		release(t, w)
	}
	c.seal(t, w)
	if f, ok := w.Component().(item.Finisher); ok {
		if err := f.Finish(gone); err != nil {
			t.Logf("Finish when the step was stopped: %v", err)
		}
	}
	c.finish(t, w)
	shut(t, w.Component())
	c.expect(t, "each chunk cancelled once")
}

func (c *writerCheck) closes(t *testing.T) {
	c.Clear(t)
	shut(t, c.opened(t, nil).Component())
	w := c.opened(t, nil)
	c.lose(t, func(ctx context.Context) { c.write(ctx, t, w, 0) })
	shut(t, w.Component())
	if _, ok := w.Component().(item.Positioner); ok {
		w = c.New(t)
		if err := c.open(w.Component(), item.Position(`{"no`)); err == nil {
			t.Error("Open accepted a position that is not JSON")
		}
		shut(t, w.Component())
	}
}

func (c *writerCheck) refusesLoss(t *testing.T) {
	c.Clear(t)
	w := c.opened(t, nil)
	at := c.commit(t, w, 0)
	shut(t, w.Component())
	c.Lose(t)
	w = c.New(t)
	err := c.open(w.Component(), at)
	if err == nil {
		t.Errorf("Open at %s accepted a target that lost committed data", at)
	} else {
		t.Logf("refused: %v", err)
	}
	shut(t, w.Component())
}

func itoa(i int) string { return strconv.Itoa(i) }
