// Package enginetest is the conformance suite of engine.Engine: it drives an engine over a real
// database, with work in its own table, in this process and in others that are killed.
//
// A package that implements an engine runs it from its tests, for each database:
//
//	func TestMain(m *testing.M) { os.Exit(enginetest.Main(m, newEngine)) }
//	func TestConformance(t *testing.T) { testdb.Each(t, func(t *testing.T, url string) { enginetest.Run(t, newEngine) }) }
//
// It imports tx, runtime/engine, adaptor/database/gorm, internal/testdb, internal/testproxy and
// testify. Only tests import it.
package enginetest

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// World is the environment of an engine under test.
type World struct {
	URL      string
	Database tx.Database
	Work     *Work
	// Grace is how long an untaken delivery may be held.
	Grace  time.Duration
	Logger *slog.Logger
}

// Maker makes an engine, and creates its tables if they are missing.
type Maker func(ctx context.Context, w World) (engine.Engine, error)

const patience = time.Minute

type test struct {
	name string
	run  func(b *bed)
}

// Run runs the suite.
func Run(t *testing.T, open func(t testing.TB) string, maker Maker) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"enqueue", enqueues()},
		{"deliver", deliveries()},
		{"end", ends()},
		{"process", processes()},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, one := range group.tests {
				t.Run(one.name, func(t *testing.T) {
					t.Parallel()
					one.run(newBed(t, open(t), maker))
				})
			}
		})
	}
}

type bed struct {
	testing.TB
	World
	engine  engine.Engine
	manager *tx.Manager
	maker   Maker
	said    *said
}

func newBed(t testing.TB, url string, maker Maker) *bed {
	b := &bed{TB: t, maker: maker, said: &said{}}
	b.open(url)
	require.NoError(t, b.Work.create(t.Context()))
	b.remake(time.Minute)
	return b
}

func (b *bed) open(url string) {
	provider, err := gormdb.Open(b.Context(), map[string]gormdb.Config{tx.Default: {URL: url}})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, provider.Close()) })
	db, err := provider.Database(tx.Default)
	require.NoError(b, err)
	b.World = World{URL: url, Database: db, Work: &Work{db: db}, Logger: slog.New(b.said)}
	b.manager = tx.NewManager(db)
}

func (b *bed) remake(grace time.Duration) {
	b.Grace = grace
	made, err := b.maker(b.Context(), b.World)
	require.NoError(b, err)
	b.engine = made
}

func (b *bed) do(ctx context.Context, p tx.Propagation, fn func(ctx context.Context) error) error {
	return b.manager.Do(ctx, tx.Attr{Propagation: p}, fn)
}

func (b *bed) submit(ctx context.Context, ds ...engine.Delivery) {
	require.NoError(b, b.do(ctx, tx.Required, func(ctx context.Context) error {
		if err := b.Work.Add(ctx, ds...); err != nil {
			return err
		}
		return b.engine.Enqueue(ctx, ds...)
	}))
}

func (b *bed) until(what string, condition func() bool) {
	b.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			require.FailNow(b, "it did not happen in time: "+what, "logged:\n%s", b.said)
		}
	}
}

func task(id int64) engine.Delivery {
	return engine.Delivery{Kind: engine.Task, ID: id, Epoch: 1, Queue: "a"}
}

func in(queue string, d engine.Delivery) engine.Delivery {
	d.Queue = queue
	return d
}

func tasks(from, to int64) []engine.Delivery {
	var ds []engine.Delivery
	for id := from; id <= to; id++ {
		ds = append(ds, task(id))
	}
	return ds
}

type worker struct {
	b      *bed
	stop   chan struct{}
	cancel context.CancelFunc
	ended  chan error

	once sync.Once
	mu   sync.Mutex
	got  []engine.Delivery
}

func (b *bed) work(slots int, queues []string, h engine.Handler) *worker {
	ctx, cancel := context.WithCancel(b.Context())
	w := &worker{b: b, stop: make(chan struct{}), cancel: cancel, ended: make(chan error, 1)}
	if h == nil {
		h = b.takeAndEnd
	}
	go func() {
		w.ended <- b.engine.Run(ctx, w.stop, engine.Subscription{Queues: queues, Slots: slots}, func(ctx context.Context, d engine.Delivery) engine.Answer {
			w.mu.Lock()
			w.got = append(w.got, d)
			w.mu.Unlock()
			return h(ctx, d)
		})
	}()
	b.Cleanup(func() { w.halt(); w.cancel(); w.wait() })
	return w
}

func (b *bed) takeAndEnd(ctx context.Context, d engine.Delivery) engine.Answer {
	taken, err := b.Work.Take(ctx, d, "here")
	if err == nil && taken {
		err = b.Work.End(ctx, d)
	}
	switch {
	case err != nil:
		return engine.RetryAfter(10 * time.Millisecond)
	case !taken:
		return engine.Drop()
	}
	return engine.Done()
}

func (w *worker) halt() { w.once.Do(func() { close(w.stop) }) }

func (w *worker) wait() {
	select {
	case err := <-w.ended:
		w.ended <- err
		require.NoError(w.b, err)
	case <-time.After(patience):
		require.FailNow(w.b, "Run did not return in time", "logged:\n%s", w.b.said)
	}
}

func (w *worker) ids() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []int64
	for _, d := range w.got {
		ids = append(ids, d.ID)
	}
	return ids
}

func (w *worker) has(id int64) bool { return w.count(id) > 0 }

func (w *worker) count(id int64) int {
	n := 0
	for _, got := range w.ids() {
		if got == id {
			n++
		}
	}
	return n
}

type said struct {
	mu    sync.Mutex
	lines []string
	wrong int
}

func (s *said) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (s *said) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(r.Level.String() + " " + r.Message)
	r.Attrs(func(a slog.Attr) bool { line.WriteString(" " + a.String()); return true })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line.String())
	if r.Level >= slog.LevelWarn {
		s.wrong++
	}
	return nil
}

func (s *said) WithAttrs([]slog.Attr) slog.Handler { return s }

func (s *said) WithGroup(string) slog.Handler { return s }

func (s *said) complaints() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrong
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}
