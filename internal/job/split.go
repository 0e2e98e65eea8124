package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/surfin-batch/surfin/internal/job/walk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// branch is one flow of a split.
type branch struct {
	walk   *walk.Walk
	result walk.Result
	err    error
}

// split runs the branches in parallel and waits for all. The most severe outcome counts; an error (of
// the record, or a refusal) ends the whole flow.
func (l *live) Split(ctx context.Context, w *walk.Walk, at *core.SplitElement, walks []*walk.Walk) (walk.Result, error) {
	before := l.run.splitBefore(w, at)
	if before != nil || at.OnWorkers && l.run.part == nil {
		return l.splitOnWorkers(ctx, w, at, walks, before)
	}
	branches := make([]*branch, len(walks))
	workers := at.Workers
	if workers <= 0 {
		workers = len(branches)
	}
	slots := make(chan struct{}, workers)
	var stopping atomic.Bool
	var all sync.WaitGroup
	begin, end := core.ForkSlot(ctx)
	for i, sub := range walks {
		b := &branch{walk: sub}
		branches[i] = b
		slots <- struct{}{}
		if stopping.Load() || l.Stopping() {
			<-slots
			b.result = walk.Stopped("not begun: the job was stopping")
			continue
		}
		all.Add(1)
		err := l.run.config.Spawn(func() {
			defer all.Done()
			defer func() { <-slots }()
			begin()
			defer end()
			b.err = exception.Guard(func() (err error) {
				b.result, err = b.walk.Run(ctx)
				return err
			})
			if l.run.wasStopped(ctx, b.err) {
				b.result, b.err = walk.Stopped("stopped on request"), nil
			}
			if b.result.IsStopped() {
				stopping.Store(true)
			}
		})
		if err != nil {
			all.Done()
			<-slots
			b.err = fmt.Errorf("split %s: branch %d could not be started: %w", at.Name, i+1, err)
		}
	}
	all.Wait()
	var errs []error
	results := make([]walk.Result, len(branches))
	for i, b := range branches {
		errs = append(errs, b.err)
		results[i] = b.result
	}
	return walk.Worst(results), errors.Join(errs...)
}
