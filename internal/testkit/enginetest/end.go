package enginetest

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/testproxy"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func endGoroutine() { runtime.Goexit() }

func ends() []test {
	return []test{
		{"stop takes no more, and waits for the handlers", graceful},
		{"the end of the context is the handlers'", brokenOff},
		{"stop before the start is a start without work", stoppedBefore},
		{"what a handler has in hand is not missing", inHand},
		{"a database that goes away and comes back is served on", awayAndBack},
	}
}

func graceful(b *bed) {
	free := make(chan struct{})
	first := b.work(2, []string{"a"}, func(ctx context.Context, d engine.Delivery) engine.Answer {
		<-free
		return b.takeAndEnd(ctx, d)
	})
	b.submit(b.Context(), task(1))
	b.until("it is in hand", func() bool { return first.has(1) })
	first.halt()
	second := b.work(1, []string{"a"}, nil)
	b.submit(b.Context(), task(2))
	b.until("another worker has the next", func() bool { return second.has(2) })
	select {
	case err := <-first.ended:
		require.FailNow(b, "Run returned before its handler", "%v", err)
	default:
	}
	close(free)
	first.wait()
	require.Equal(b, []int64{1}, first.ids())
	b.until("all are done", func() bool { return b.number("state = 'done' and takes = 1") == 2 })
}

func brokenOff(b *bed) {
	first := b.work(1, []string{"a"}, func(ctx context.Context, _ engine.Delivery) engine.Answer {
		<-ctx.Done()
		return engine.RetryAfter(0)
	})
	b.submit(b.Context(), task(1))
	b.until("it is in hand", func() bool { return first.has(1) })
	first.halt()
	first.cancel()
	first.wait()
	second := b.work(1, []string{"a"}, nil)
	b.until("another worker has it", func() bool { return second.has(1) })
}

func stoppedBefore(b *bed) {
	b.submit(b.Context(), task(1))
	stop := make(chan struct{})
	close(stop)
	var called atomic.Int32
	h := func(context.Context, engine.Delivery) engine.Answer { called.Add(1); return engine.RetryAfter(0) }
	s := engine.Subscription{Queues: []string{"a"}, Slots: 1}
	require.NoError(b, b.engine.Run(b.Context(), stop, s, h))
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	require.NoError(b, b.engine.Run(ctx, nil, s, h))
	require.Zero(b, called.Load())
}

func inHand(b *bed) {
	free := make(chan struct{})
	w := b.work(1, []string{"a"}, func(ctx context.Context, d engine.Delivery) engine.Answer {
		<-free
		return b.takeAndEnd(ctx, d)
	})
	b.submit(b.Context(), task(1))
	b.until("it is in hand", func() bool { return w.has(1) })
	missing, err := b.engine.Missing(b.Context(), task(1))
	require.NoError(b, err)
	require.Empty(b, missing)
	close(free)
	b.until("it is done", func() bool { return b.number("state = 'done'") == 1 })
	if b.engine.Capabilities().Loses {
		b.until("it is over", func() bool {
			missing, err := b.engine.Missing(b.Context(), task(1))
			require.NoError(b, err)
			return len(missing) == 1
		})
	}
}

func awayAndBack(b *bed) {
	if b.Database.Dialect() == tx.SQLite {
		b.Skip("a file does not go away")
	}
	proxy := testproxy.New(b, b.URL)
	direct := *b
	b.open(proxy.URL())
	b.remake(time.Minute)
	w := b.work(2, []string{"a"}, nil)
	b.submit(b.Context(), task(1))
	b.until("it comes", func() bool { return w.has(1) })
	for round := range int64(2) {
		before := b.said.complaints()
		proxy.Cut()
		b.until("the engine has noticed", func() bool { return b.said.complaints() > before })
		direct.submit(b.Context(), task(10+round))
		proxy.Heal()
		b.until("what was enqueued meanwhile comes", func() bool { return w.has(10 + round) })
		direct.submit(b.Context(), task(20+round))
		b.until("what is enqueued after that comes", func() bool { return w.has(20 + round) })
	}
}
