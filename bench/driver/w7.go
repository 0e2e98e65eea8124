package main

import (
	"context"
	"sync"

	"github.com/surfin-batch/surfin/bench/hashing"
)

// w7 is a CPU-bound step, as one, in four parts of one process, and in four parts on two workers.
func w7() Workload {
	job := func(name, partition string) Contestant {
		return inside{name: oursPrefix + " " + name, run: func(ctx context.Context, w Work) (Result, error) {
			return runJob(ctx, w, w.URL, hashing.Job("hash", partition, w.Rows)+jobParameters, hashing.Components())
		}}
	}
	byHand := func(name string, goroutines int) Contestant {
		return inside{name: name, run: func(_ context.Context, w Work) (Result, error) {
			return timed(func() error {
				var all sync.WaitGroup
				for first := range goroutines {
					all.Go(func() {
						for n := first; n < w.Rows; n += goroutines {
							hashing.Hash(int64(n))
						}
					})
				}
				all.Wait()
				return nil
			})
		}}
	}
	return Workload{
		Name: "w7", Title: "a step that hashes numbers, as one and in parts", Share: 0.3,
		Contestants: []Contestant{
			job("one step", ""),
			job("four parts, four at a time", "{by: {count: 4}, workers: 4}"),
			job("four parts, two at a time", "{by: {count: 4}, workers: 2}"),
			byHand("loop, no engine", 1),
			byHand("two loops at a time, no engine", 2),
			inside{name: oursPrefix + " four parts, two worker processes", run: onWorkers},
		},
		Prepare: withHistory,
	}
}

func withHistory(ctx context.Context, b *bench, w *Work) error {
	w.URL = b.server.url
	return b.server.template(ctx, w.Workload)
}
