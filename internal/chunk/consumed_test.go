package chunk_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// taking is a reader that does not report whether a failed Read has taken its item. Item 13 fails.
type taking struct {
	numbers
	takes bool
	err   error
	fails int
}

func (r *taking) Read(ctx context.Context) (int, error) {
	if r.next == 13 && r.fails > 0 {
		r.fails--
		if r.takes {
			r.next++
		}
		return 0, r.err
	}
	return r.numbers.Read(ctx)
}

type placing struct{ taking }

func (r *placing) Open(_ context.Context, at item.Position) error {
	if at == nil {
		return nil
	}
	return json.Unmarshal(at, &r.next)
}

func (r *placing) Position() (item.Position, error) { return json.Marshal(r.next) }

// Rule C1b.
func TestAReadThatFailedLosesNoItem(t *testing.T) {
	t.Parallel()
	skippable, retryable := exception.Skippable("read", errBad), exception.Retryable("read", errBad)
	both := &exception.BatchError{Op: "read", Err: errBad, Retryable: true, Skippable: true}
	with := func(takes bool, err error) taking { return taking{numbers{n: 25}, takes, err, 1} }
	const names = "Read has consumed its item, or did not say that it has not"
	for name, c := range map[string]struct {
		reader func() item.ItemReader[int]
		says   string
		skips  int64
	}{
		"skippable, taken":                      {func() item.ItemReader[int] { r := with(true, skippable); return &r }, "", 1},
		"skippable, taken, with a position":     {func() item.ItemReader[int] { return &placing{with(true, skippable)} }, "", 1},
		"skippable, not taken, and said":        {func() item.ItemReader[int] { return &placing{with(false, item.NotConsumed(skippable))} }, "implement SkipItem, or return batch.Consumed", 0},
		"retryable, taken":                      {func() item.ItemReader[int] { r := with(true, retryable); return &r }, names, 0},
		"retryable, taken, with a position":     {func() item.ItemReader[int] { return &placing{with(true, retryable)} }, names, 0},
		"retryable, not taken":                  {func() item.ItemReader[int] { r := with(false, retryable); return &r }, names, 0},
		"retryable, not taken, and said":        {func() item.ItemReader[int] { r := with(false, item.NotConsumed(retryable)); return &r }, "", 0},
		"retryable, not taken, with a position": {func() item.ItemReader[int] { return &placing{with(false, retryable)} }, "", 0},
		"both, taken":                           {func() item.ItemReader[int] { return &placing{with(true, both)} }, "", 1},
		"both, not taken":                       {func() item.ItemReader[int] { return &placing{with(false, both)} }, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				f := fixture{e: engine(t, emptied(t, url)), reader: c.reader(), config: chunk.Config{
					Retry: chunk.Retry{Limit: 3}, Skip: chunk.LimitSkip{Limit: 5},
				}}
				exec := f.run(t)
				if c.says != "" {
					require.Equal(t, core.StatusFailed, exec.Status)
					require.Contains(t, exec.Error, c.says)
					f.reader = &placing{taking{numbers: numbers{n: 25}}} // with or without, its position is a number
					if _, has := c.reader().(item.Positioner); !has {
						f.reader = &numbers{n: 25}
					}
					exec = f.run(t)
				}
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				total := f.e.Step(exec, "load").Total()
				require.Equal(t, c.skips, total.ReadSkip)
				want := upTo(25)
				if c.skips > 0 {
					want = append(upTo(13), want[14:]...)
				}
				require.Equal(t, want, f.e.Ints(allRows))
			})
		})
	}
}
