package enginetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

var errWork = errors.New("the work failed")

func enqueues() []test {
	return []test{
		{"a delivery commits and rolls back with its transaction", rollsBack},
		{"a delivery rolls back with its savepoint", rollsBackToSavepoint},
		{"a delivery needs no transaction", enqueuedAlone},
		{"a thousand deliveries are one call, and each comes", thousand},
		{"what is wrong is refused", refusals},
		{"a delivery that is doubled is applied once", doubled},
		{"a delivery of a higher epoch takes the place of one that waits", superseded},
		{"a delivery that is canceled does not come, unless its transaction rolls back", canceled},
		{"what waits is not missing", waiting},
	}
}

func last() engine.Delivery {
	d := task(99999)
	d.Priority = engine.LastPriority
	return d
}

func rollsBack(b *bed) {
	err := b.do(b.Context(), tx.Required, func(ctx context.Context) error {
		b.submit(ctx, task(1))
		return errWork
	})
	require.ErrorIs(b, err, errWork)
	require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
		b.submit(ctx, task(2))
		return nil
	}))
	w := b.work(1, []string{"a"}, nil)
	b.submit(b.Context(), last())
	b.until("the last one comes", func() bool { return w.has(last().ID) })
	require.Equal(b, []int64{2, last().ID}, w.ids())
}

func rollsBackToSavepoint(b *bed) {
	require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
		b.submit(ctx, task(1))
		err := b.do(ctx, tx.Nested, func(ctx context.Context) error {
			b.submit(ctx, task(2))
			return errWork
		})
		require.ErrorIs(b, err, errWork)
		return b.do(ctx, tx.Nested, func(ctx context.Context) error {
			b.submit(ctx, task(3))
			return nil
		})
	}))
	w := b.work(1, []string{"a"}, nil)
	b.submit(b.Context(), last())
	b.until("the last one comes", func() bool { return w.has(last().ID) })
	require.ElementsMatch(b, []int64{1, 3, last().ID}, w.ids())
}

func enqueuedAlone(b *bed) {
	w := b.work(1, []string{"a"}, nil)
	require.NoError(b, b.Work.Add(b.Context(), task(1)))
	require.NoError(b, b.engine.Enqueue(b.Context(), task(1)))
	require.NoError(b, b.engine.Enqueue(b.Context()))
	b.until("it comes", func() bool { return w.has(1) })
}

func thousand(b *bed) {
	const n = 1000
	w := b.work(20, []string{"a"}, nil)
	b.submit(b.Context(), tasks(1, n)...)
	b.until("all are done", func() bool { return b.number("state = 'done'") == n })
	require.Equal(b, n, b.number("takes = 1"))
	ids := w.ids()
	slices.Sort(ids)
	require.Len(b, slices.Compact(ids), n)
}

func (b *bed) number(where string) int {
	n, err := b.Work.count(b.Context(), where)
	require.NoError(b, err)
	return n
}

func refusals(b *bed) {
	for want, d := range map[string]engine.Delivery{
		`its kind is "job"`: {Kind: "job", ID: 1, Epoch: 1, Queue: "a"},
		"its id":            {Kind: engine.Task, Epoch: 1, Queue: "a"},
		"its epoch":         {Kind: engine.Task, ID: 1, Queue: "a"},
		"0 bytes":           {Kind: engine.Task, ID: 1, Epoch: 1},
		"101 bytes":         {Kind: engine.Task, ID: 1, Epoch: 1, Queue: strings.Repeat("q", engine.MaxQueue+1)},
		"priority is 5":     {Kind: engine.Task, ID: 1, Epoch: 1, Queue: "a", Priority: 5},
	} {
		require.ErrorContains(b, b.engine.Enqueue(b.Context(), task(1), d), want)
		require.ErrorContains(b, b.engine.Cancel(b.Context(), d), want)
		_, err := b.engine.Missing(b.Context(), d)
		require.ErrorContains(b, err, want)
	}
	for want, s := range map[string]engine.Subscription{
		"at least one queue": {Slots: 1},
		"listed twice":       {Slots: 1, Queues: []string{"a", "a"}},
		"0 slots":            {Queues: []string{"a"}},
	} {
		require.ErrorContains(b, b.engine.Run(b.Context(), nil, s, b.takeAndEnd), want)
	}
}

func doubled(b *bed) {
	w := b.work(4, []string{"a"}, nil)
	b.submit(b.Context(), task(1))
	require.NoError(b, b.engine.Enqueue(b.Context(), task(1), task(1)))
	b.submit(b.Context(), last())
	b.until("both are done", func() bool { return b.number("state = 'done'") == 2 })
	require.Equal(b, 2, b.number("takes = 1"))
	require.True(b, w.has(1))
}

func superseded(b *bed) {
	b.submit(b.Context(), task(1))
	b.submit(b.Context(), in("b", task(2)))
	var next engine.Delivery
	require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
		raised, applied, err := b.Work.again(ctx, task(1))
		require.True(b, applied)
		if err != nil {
			return err
		}
		next = raised
		return b.engine.Enqueue(ctx, raised)
	}))
	w := b.work(1, []string{"a"}, nil)
	b.submit(b.Context(), last())
	b.until("the last one comes", func() bool { return w.has(last().ID) })
	require.Equal(b, []int64{1, last().ID}, w.ids())
	require.Equal(b, next.Key(), w.got[0].Key())
	require.Equal(b, 1, b.number("id = 2 and state = 'waiting'"))
}

func canceled(b *bed) {
	b.submit(b.Context(), tasks(1, 2)...)
	cancel := func(ctx context.Context, d engine.Delivery) error {
		if _, err := b.Work.cancel(ctx, d); err != nil {
			return err
		}
		return b.engine.Cancel(ctx, d)
	}
	require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error { return cancel(ctx, task(1)) }))
	err := b.do(b.Context(), tx.Required, func(ctx context.Context) error {
		return errors.Join(cancel(ctx, task(2)), errWork)
	})
	require.Equal(b, errWork.Error(), err.Error())
	require.NoError(b, b.engine.Cancel(b.Context(), task(7)), "it is not there, and that is no error")
	w := b.work(1, []string{"a"}, nil)
	b.submit(b.Context(), last())
	b.until("the last one comes", func() bool { return w.has(last().ID) })
	require.Equal(b, []int64{2, last().ID}, w.ids())
}

func waiting(b *bed) {
	later := task(2)
	later.NotBefore = time.Now().Add(time.Hour)
	b.submit(b.Context(), task(1), later, in("nobody", task(3)))
	missing, err := b.engine.Missing(b.Context(), task(1), later, in("nobody", task(3)))
	require.NoError(b, err)
	require.Empty(b, missing)
	never := task(4)
	missing, err = b.engine.Missing(b.Context(), task(1), never)
	require.NoError(b, err)
	if b.engine.Capabilities().Loses {
		require.Equal(b, []engine.Delivery{never}, missing)
	} else {
		require.Empty(b, missing)
	}
	missing, err = b.engine.Missing(b.Context())
	require.NoError(b, err)
	require.Empty(b, missing)
}
