package enginetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
)

func deliveries() []test {
	return []test{
		{"a delivery is as it was given", unchanged},
		{"a delivery waits for its time", notBefore},
		{"priorities come in order", priorities},
		{"what has waited longest comes first", longestFirst},
		{"a worker gets the queues that it subscribed to", queues},
		{"names of queues may have any characters", anyQueue},
		{"a delivery comes again after a while, and holds no slot meanwhile", retried},
		{"a delivery that is dropped does not come again", droppedOnce},
		{"a worker holds no more than it has slots, over all queues", slots},
		{"a handler that panics, or ends its goroutine, gives its slot back", broken},
	}
}

func unchanged(b *bed) {
	w := b.work(3, []string{"a"}, nil)
	given := []engine.Delivery{
		{Kind: engine.Task, ID: 1 << 53, Epoch: 1<<53 + 1, Queue: "a", Priority: engine.LastPriority},
		{Kind: engine.Part, ID: 2, Epoch: 7, Queue: "a", Priority: engine.FirstPriority},
		{Kind: engine.Resume, ID: 2, Epoch: 1, Queue: "a"},
	}
	b.submit(b.Context(), given...)
	b.until("all are done", func() bool { return b.number("state = 'done'") == len(given) })
	for _, d := range given {
		require.True(b, slices.ContainsFunc(w.got, func(got engine.Delivery) bool {
			return got.Key() == d.Key() && got.Queue == d.Queue && got.Filled().Priority == d.Filled().Priority
		}), "%s of %v", d, w.got)
	}
}

func notBefore(b *bed) {
	at := make(chan time.Time, 1)
	w := b.work(1, []string{"a"}, func(ctx context.Context, d engine.Delivery) engine.Answer {
		if d.ID == 1 && len(at) == 0 {
			at <- time.Now()
		}
		return b.takeAndEnd(ctx, d)
	})
	d := task(1)
	d.NotBefore = time.Now().Add(2 * time.Second)
	b.submit(b.Context(), d)
	b.submit(b.Context(), last())
	b.until("the other one comes", func() bool { return w.has(last().ID) })
	b.until("it comes", func() bool { return w.has(1) })
	require.False(b, (<-at).Before(d.NotBefore))
}

func priorities(b *bed) {
	free := make(chan struct{})
	w := b.work(1, []string{"a"}, func(ctx context.Context, d engine.Delivery) engine.Answer {
		<-free
		return b.takeAndEnd(ctx, d)
	})
	b.submit(b.Context(), task(9))
	b.until("the slot is full", func() bool { return w.has(9) })
	for id := engine.LastPriority; id >= engine.FirstPriority; id-- {
		d := task(int64(id))
		d.Priority = id
		b.submit(b.Context(), d)
	}
	unsaid := task(5) // has priority 2
	b.submit(b.Context(), unsaid)
	close(free)
	b.until("all are done", func() bool { return b.number("state = 'done'") == 6 })
	require.Equal(b, []int64{9, 1, 2, 5, 3, 4}, w.ids())
}

func longestFirst(b *bed) {
	free := make(chan struct{})
	w := b.work(1, []string{"a"}, func(ctx context.Context, d engine.Delivery) engine.Answer {
		<-free
		return b.takeAndEnd(ctx, d)
	})
	b.submit(b.Context(), task(9))
	b.until("the slot is full", func() bool { return w.has(9) })
	b.submit(b.Context(), task(1))
	for id, ago := range map[int64]time.Duration{2: time.Hour, 3: time.Minute} {
		d := task(id)
		d.NotBefore = time.Now().Add(-ago)
		b.submit(b.Context(), d)
	}
	close(free)
	b.until("all are done", func() bool { return b.number("state = 'done'") == 4 })
	require.Equal(b, []int64{9, 2, 3, 1}, w.ids())
}

func queues(b *bed) {
	first := b.work(2, []string{"a", "b"}, nil)
	second := b.work(2, []string{"c"}, nil)
	b.submit(b.Context(), task(1), in("b", task(2)), in("c", task(3)), in("d", task(4)))
	b.until("all but one are done", func() bool { return b.number("state = 'done'") == 3 })
	require.ElementsMatch(b, []int64{1, 2}, first.ids())
	require.Equal(b, []int64{3}, second.ids())
}

func anyQueue(b *bed) {
	names := []string{"job", "Job", "mail.send", "mail/send", "mail send", "e-mail", "メール", "a_b", "a-b", "_", "%41", "\n", "2", "default"}
	for i := range 100 {
		names = append(names, fmt.Sprintf("%0100d", i))
	}
	w := b.work(4, names, nil)
	for i, name := range names {
		b.submit(b.Context(), in(name, task(int64(i)+1)))
	}
	b.until("all are done", func() bool { return b.number("state = 'done'") == len(names) })
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.got {
		require.Equal(b, names[d.ID-1], d.Queue)
	}
}

func retried(b *bed) {
	const pause = 2 * time.Second
	var mu sync.Mutex
	var first, second time.Time
	w := b.work(1, []string{"a"}, func(ctx context.Context, d engine.Delivery) engine.Answer {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case d.ID != 1:
		case first.IsZero():
			first = time.Now()
			return engine.RetryAfter(pause)
		default:
			second = time.Now()
		}
		return b.takeAndEnd(ctx, d)
	})
	b.submit(b.Context(), task(1))
	b.until("it comes", func() bool { return w.has(1) })
	b.submit(b.Context(), task(2))
	b.until("all are done", func() bool { return b.number("state = 'done'") == 2 })
	require.GreaterOrEqual(b, second.Sub(first), pause)
	require.Equal(b, []int64{1, 2, 1}, w.ids())
}

func droppedOnce(b *bed) {
	b.submit(b.Context(), task(1))
	w := b.work(1, []string{"a"}, func(ctx context.Context, d engine.Delivery) engine.Answer {
		if d.ID == 1 {
			_, err := b.Work.cancel(ctx, d)
			require.NoError(b, err)
			return engine.Drop()
		}
		return b.takeAndEnd(ctx, d)
	})
	b.until("it comes", func() bool { return w.has(1) })
	b.submit(b.Context(), last())
	b.until("the last one comes", func() bool { return w.has(last().ID) })
	require.Equal(b, []int64{1, last().ID}, w.ids())
}

func slots(b *bed) {
	free := make(chan struct{})
	wait := func(ctx context.Context, d engine.Delivery) engine.Answer {
		<-free
		return b.takeAndEnd(ctx, d)
	}
	few := b.work(2, []string{"a", "b", "c"}, wait)
	for id := int64(1); id <= 9; id++ {
		b.submit(b.Context(), in(string("abc"[id%3]), task(id)))
	}
	b.until("the slots are full", func() bool { return len(few.ids()) == 2 })
	many := b.work(20, []string{"a", "b", "c"}, wait)
	b.until("another worker has the rest", func() bool { return len(distinct(few, many)) == 9 })
	require.Len(b, few.ids(), 2)
	b.submit(b.Context(), in("b", task(10)))
	b.until("another worker has the next", func() bool { return many.has(10) })
	require.Len(b, few.ids(), 2)
	close(free)
	b.until("all are done", func() bool { return b.number("state = 'done'") == 10 })
	many.halt()
	many.wait()
	b.submit(b.Context(), task(11), in("b", task(12)), in("c", task(13)), task(14))
	b.until("the slots serve again", func() bool { return b.number("state = 'done'") == 14 })
}

func distinct(ws ...*worker) []int64 {
	var ids []int64
	for _, w := range ws {
		ids = append(ids, w.ids()...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func broken(b *bed) {
	w := b.work(1, []string{"a"}, func(ctx context.Context, d engine.Delivery) engine.Answer {
		switch d.ID {
		case 1:
			panic("broken")
		case 2:
			endGoroutine()
		}
		return b.takeAndEnd(ctx, d)
	})
	for id := range int64(3) {
		b.submit(b.Context(), task(id+1))
	}
	b.until("the third is done", func() bool { return b.number("state = 'done'") == 1 && w.has(1) && w.has(2) })
	b.until("both are reported", func() bool { return b.said.complaints() >= 2 })
	require.Contains(b, b.said.String(), "the handler of task 1, epoch 1 panicked: broken")
	require.Contains(b, b.said.String(), "the handler of task 2, epoch 1 ended its goroutine")
}
