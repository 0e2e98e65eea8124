package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/surfin-batch/surfin/internal/job/walk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/workslot"
)

// Split runs the branches in parallel. The most severe outcome counts; an error
// ends the whole flow.
func (l *live) Split(ctx context.Context, w *walk.Walk, at *model.SplitElement, branches []*walk.Walk) (walk.Result, error) {
	before := l.run.splitBefore(w, at)
	if before != nil || at.OnWorkers && l.run.part == nil {
		return l.splitOnWorkers(ctx, w, at, branches, before)
	}
	results, errs := make([]walk.Result, len(branches)), make([]error, len(branches))
	workers := at.Workers
	if workers <= 0 {
		workers = len(branches)
	}
	slots := make(chan struct{}, workers)
	var stopping atomic.Bool
	var all sync.WaitGroup
	begin, end := workslot.ForkSlot(ctx)
	for i, branch := range branches {
		slots <- struct{}{}
		if stopping.Load() || l.Stopping() {
			<-slots
			results[i] = walk.Stopped("not begun: the job was stopping")
			continue
		}
		all.Add(1)
		err := l.run.config.Spawn(func() {
			defer all.Done()
			defer func() { <-slots }()
			begin()
			defer end()
			errs[i] = panics.Guard(func() (err error) {
				results[i], err = branch.Run(ctx)
				return err
			})
			if l.run.wasStopped(ctx, errs[i]) {
				results[i], errs[i] = walk.Stopped("stopped on request"), nil
			}
			if results[i].IsStopped() {
				stopping.Store(true)
			}
		})
		if err != nil {
			all.Done()
			<-slots
			errs[i] = fmt.Errorf("split %s: branch %d could not be started: %w", at.Name, i+1, err)
		}
	}
	all.Wait()
	return walk.Worst(results), errors.Join(errs...)
}
