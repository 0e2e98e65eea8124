package chunk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// totals is a processor with a position: it turns an item into its running total, and fails, or filters
// the item, after adding it.
type totals struct {
	sum    int
	isOpen bool
	fails  func(i int) error
}

func (p *totals) Open(_ context.Context, at item.Position) error {
	if p.isOpen {
		return errors.New("it is open")
	}
	p.sum, p.isOpen = 0, true
	if at == nil {
		return nil
	}
	return json.Unmarshal(at, &p.sum)
}

func (p *totals) Position() (item.Position, error) { return json.Marshal(p.sum) }

func (p *totals) Close(context.Context) error {
	p.isOpen = false
	return nil
}

func (p *totals) Process(_ context.Context, i int) (int, error) {
	p.sum += i
	if p.fails != nil {
		if err := p.fails(i); err != nil {
			return 0, err
		}
	}
	if i%7 == 5 {
		return 0, item.ErrFilter
	}
	return rowOf(p.sum, i), nil
}

func rowOf(sum, i int) int { return sum*1000 + i }

func totalsOf(n int, skips ...int) []int64 {
	rows, sum := []int64{}, 0
	for i := range n {
		if slices.Contains(skips, i) {
			continue
		}
		if sum += i; i%7 != 5 {
			rows = append(rows, int64(rowOf(sum, i)))
		}
	}
	return rows
}

// stateCase is a fault of a step with running totals of 40 numbers, in chunks of ten.
type stateCase struct {
	process, write func(i int) error
	skips          []int
	fails          bool // the first attempt; the next one completes
}

func stateCases() map[string]stateCase {
	skippable := exception.Skippable("", errBad)
	retryable := exception.Retryable("", errBad)
	fails := func(of ...int) func(err error) func(int) error {
		return func(err error) func(int) error {
			return func(i int) error {
				if slices.Contains(of, i%1000) {
					return err
				}
				return nil
			}
		}
	}
	return map[string]stateCase{
		"none":                            {},
		"a write that is tried again":     {write: at(rowOf(91, 13), times(2, retryable))},
		"an item tried again":             {process: at(13, times(2, retryable))},
		"the last item tried again":       {process: at(19, times(2, retryable))},
		"an item that is not processed":   {process: fails(13)(skippable), skips: []int{13}},
		"many items that are not":         {process: fails(10, 13, 14, 19, 25)(skippable), skips: []int{10, 13, 14, 19, 25}},
		"an item that is not written":     {write: fails(13)(skippable), skips: []int{13}},
		"items that are not written":      {write: fails(10, 11, 13, 18, 20, 29)(skippable), skips: []int{10, 11, 13, 18, 20, 29}},
		"both kinds":                      {process: fails(11, 27)(skippable), write: fails(13, 18)(skippable), skips: []int{11, 13, 18, 27}},
		"a failure of the step":           {process: at(23, times(1, errBad)), fails: true},
		"a failure of the step's writing": {write: at(rowOf(23*12, 23), times(1, errBad)), fails: true},
		"skips, and a failure":            {process: fails(13)(skippable), write: at(rowOf(17*9-13, 17), times(1, errBad)), skips: []int{13}, fails: true},
	}
}

// Rule C4a.
func TestAProcessorWithAPositionHasSeenWhatIsCommitted(t *testing.T) {
	t.Parallel()
	modes := map[string]chunk.Config{
		"plain":                         {},
		"by halves":                     {Isolate: chunk.IsolateBisect},
		"in the transaction":            {ProcessInTransaction: true},
		"in the transaction, by halves": {ProcessInTransaction: true, Isolate: chunk.IsolateBisect},
		"reading ahead":                 {ReadAhead: chunk.ReadAheadOn},
	}
	testdb.Each(t, func(t *testing.T, url string) {
		for name := range stateCases() {
			for mode, config := range modes {
				if strings.HasPrefix(url, "postgres") && mode != "plain" && mode != "in the transaction, by halves" {
					continue // the engine is the same, and the databases differ in few statements
				}
				t.Run(name+", "+mode, func(t *testing.T) {
					c := stateCases()[name]
					config.Retry, config.Skip = chunk.Retry{Limit: 2}, chunk.LimitSkip{Limit: 10}
					f := fixture{e: engine(t, emptied(t, url)), reader: &seekable{numbers: numbers{n: 40}}, before: c.write, config: config}
					p := &totals{fails: c.process}
					f.processor = p
					exec := f.run(t)
					if c.fails {
						require.Equal(t, core.StatusFailed, exec.Status)
						require.False(t, p.isOpen)
						f.reader, f.processor = &seekable{numbers: numbers{n: 40}}, &totals{fails: c.process}
						exec = f.run(t)
					}
					require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
					require.Equal(t, totalsOf(40, c.skips...), f.e.Ints(allRows))
					total := f.e.Step(exec, "load").Total()
					require.Equal(t, int64(len(totalsOf(40, c.skips...))), total.Write)
					require.Equal(t, int64(len(c.skips)), total.Skips())
					require.Equal(t, total.Read, total.Write+total.Filter+total.Skips())
				})
			}
		}
	})
}

type seen struct{ has map[int]bool }

func (p *seen) Open(_ context.Context, at item.Position) error {
	p.has = map[int]bool{}
	if at == nil {
		return nil
	}
	return json.Unmarshal(at, &p.has)
}

func (p *seen) Position() (item.Position, error) { return json.Marshal(p.has) }

func (p *seen) Process(_ context.Context, i int) (int, error) {
	if p.has[i%10] {
		return 0, item.ErrFilter
	}
	p.has[i%10] = true
	return i, nil
}

func TestAnItemThatWasFilteredForASkippedOneIsProcessedAgain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		for _, inTransaction := range []bool{false, true} {
			f := fixture{
				e: engine(t, emptied(t, url)), reader: &numbers{n: 30}, processor: &seen{},
				before: at(3, always(exception.Skippable("", errBad))),
				config: chunk.Config{Size: 20, Skip: chunk.LimitSkip{Limit: 1}, ProcessInTransaction: inTransaction},
			}
			exec := f.run(t)
			require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
			require.Equal(t, []int64{0, 1, 2, 4, 5, 6, 7, 8, 9, 13}, f.e.Ints(allRows), "13 is the first one with a 3 that is written")
			require.Equal(t, int64(19), f.e.Step(exec, "load").Counters.Filter)
		}
	})
}

func TestAProcessorWithAPositionExcludesWhatHasNoOrder(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]chunk.Config{
		"processor 1 has a position, which depends on the order of the items: set concurrency to 1":                       {Concurrency: 2},
		"processor 1 has a position, but reprocess: false keeps its outputs without their positions: set reprocess: true": {KeepOutputs: true},
	} {
		f := fixture{e: engine(t, testdb.SQLite(t)), reader: &numbers{n: 3}, processor: &totals{}, config: config}
		exec := f.run(t)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, want)
		require.Empty(t, f.e.Ints(allRows))
	}
}

func TestACommitWithoutThePositionOfAProcessorIsRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		f := fixture{e: engine(t, emptied(t, url)), reader: &numbers{n: 20}, process: same, before: at(15, always(errBad))}
		require.Equal(t, core.StatusFailed, f.run(t).Status)
		f.before, f.process, f.processor, f.reader = nil, nil, &totals{}, &numbers{n: 20}
		exec := f.run(t)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "processor 1 has a position, but the last commit stored none for it")
		require.Contains(t, exec.Error, "--from-start")
		require.Equal(t, upTo(10), f.e.Ints(allRows))
	})
}

type stepKnower struct {
	totals
	calls []string
}

func (p *stepKnower) Open(ctx context.Context, at item.Position) error {
	p.calls = append(p.calls, "open")
	return p.totals.Open(ctx, at)
}

func (p *stepKnower) Close(ctx context.Context) error {
	p.calls = append(p.calls, "close")
	return p.totals.Close(ctx)
}

func (p *stepKnower) BeforeStep(_ context.Context, step *core.StepExecution) error {
	p.calls = append(p.calls, fmt.Sprintf("before %s %s", step.Name, step.Status))
	return step.Context.Put("from", "BeforeStep")
}

func (p *stepKnower) AfterStep(_ context.Context, step *core.StepExecution) error {
	p.calls = append(p.calls, fmt.Sprintf("after %s %d", step.Status, step.Counters.Write))
	step.ExitCode = "COUNTED"
	return step.Context.Put("sum", int64(p.sum))
}

// Rule C16b.
func TestAComponentListensToItsStep(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		p := &stepKnower{}
		f := fixture{e: engine(t, emptied(t, url)), reader: &numbers{n: 5}, processor: p, listen: []any{p}}
		exec := f.run(t)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []string{"before load STARTED", "open", "close", "after COMPLETED 5"}, p.calls)
		step := f.e.Step(exec, "load")
		require.Equal(t, "COUNTED", step.ExitCode)
		from, _ := step.Context.Get("from")
		sum, _ := step.Context.Get("sum")
		require.Equal(t, []any{"BeforeStep", int64(10)}, []any{from, sum})
	})
}
