package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/surfin-batch/surfin/bench/overhead"
)

// itemsPerRow is the number of w4's items for each row of -size.
const itemsPerRow = 50

// w4 is the time of one item of a reader, a processor and a writer that do next to nothing, without
// the commits.
func w4() Workload {
	perItem := func(items int, work func(t *overhead.Total) (Result, error)) (Result, error) {
		t := &overhead.Total{}
		r, err := work(t)
		r.Seconds /= float64(items)
		r.Found = strconv.Itoa(t.Items)
		return r, err
	}
	loop := func(name string, run func(ctx context.Context, items int, t *overhead.Total) error) Contestant {
		return inside{name: name, run: func(ctx context.Context, w Work) (Result, error) {
			items := w.Rows * itemsPerRow
			return perItem(items, func(t *overhead.Total) (Result, error) {
				return timed(func() error { return run(ctx, items, t) })
			})
		}}
	}
	step := func(name string, processor bool) Contestant {
		return inside{name: oursPrefix + " " + name, run: func(ctx context.Context, w Work) (Result, error) {
			items := w.Rows * itemsPerRow
			return perItem(items, func(t *overhead.Total) (Result, error) {
				r, err := runJob(ctx, w, "sqlite:"+sqlitePath(w), jobParameters+overhead.Job(items, processor), overhead.Components(t))
				r.Seconds = t.Took().Seconds() // without the start and the end of the job
				return r, err
			})
		}}
	}
	return Workload{
		Name: "w4", Title: fmt.Sprintf("the engine: one item of %d for each row, chunks of %d", itemsPerRow, overhead.Chunk), Part: true,
		Contestants: []Contestant{
			loop("generic loop with a processor", func(ctx context.Context, items int, t *overhead.Total) error {
				return overhead.Loop(ctx, &overhead.Counter{Items: items}, overhead.Increment{}, t, overhead.Chunk)
			}),
			step("a step", false),
			step("a step with a processor", true),
			loop("loop over values of type any", overhead.Boxed),
			loop("a channel for the items", overhead.Channels),
		},
		Check: func(_ context.Context, w Work, r Result) error {
			if want := strconv.Itoa(w.Rows * itemsPerRow); r.Found != want {
				return fmt.Errorf("%s items were written, and %s were to be", r.Found, want)
			}
			return nil
		},
	}
}
