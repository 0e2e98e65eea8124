package core_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type mark struct{ name string }

type scope struct {
	name string
	told *[]string
}

func (s scope) Observe(_ context.Context, _ core.Event) { *s.told = append(*s.told, "observe "+s.name) }

func (s scope) Enter(ctx context.Context, _ core.Event) context.Context {
	*s.told = append(*s.told, "enter "+s.name)
	return context.WithValue(ctx, mark{s.name}, true)
}

func TestEveryObserverIsToldOnceAndScopesAddToTheContext(t *testing.T) {
	t.Parallel()
	var told []string
	plain := core.ObserverFunc(func(context.Context, core.Event) { told = append(told, "observe plain") })
	all := core.Observers(scope{"a", &told}, nil, core.Observers(plain, scope{"b", &told}))
	ctx := core.Enter(t.Context(), all, core.JobStarted{})
	require.Equal(t, []string{"enter a", "observe plain", "enter b"}, told)
	require.Equal(t, true, ctx.Value(mark{"a"}))
	require.Equal(t, true, ctx.Value(mark{"b"}))

	told = nil
	all.Observe(ctx, core.JobEnded{})
	require.Equal(t, []string{"observe a", "observe plain", "observe b"}, told)

	require.Equal(t, ctx, core.Enter(ctx, nil, core.JobStarted{}), "nobody observes")
	require.Equal(t, ctx, core.Enter(ctx, core.Observers(nil), core.JobStarted{}))
}

func TestAnObserverThatPanicsIsReportedAndChangesNothing(t *testing.T) {
	t.Parallel()
	var seen []core.Event
	bad := core.ObserverFunc(func(context.Context, core.Event) { panic("boom") })
	good := core.ObserverFunc(func(_ context.Context, e core.Event) { seen = append(seen, e) })
	all := core.Observers(bad, good)
	ctx := core.Enter(t.Context(), all, core.StopAsked{Execution: 1})
	require.Equal(t, t.Context(), ctx)
	require.Len(t, seen, 2)
	failed, ok := seen[0].(core.ObserverFailed)
	require.True(t, ok)
	require.Equal(t, []string{"core.ObserverFunc", "core.StopAsked"}, []string{failed.Observer, failed.Event})
	require.EqualError(t, failed.Err, "panic: boom")
	require.Equal(t, core.StopAsked{Execution: 1}, seen[1])

	core.Observers(bad, bad).Observe(ctx, core.StopAsked{}) // neither can report
	core.Observers(bad).Observe(ctx, core.StopAsked{})      // the log of the process has it
}
