package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/workslot"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// branch is one flow of a split.
type branch struct {
	walk   *walk
	result result
	err    error
}

// split runs the branches in parallel and waits for all. The most severe outcome counts; an error (of
// the record, or a refusal) ends the whole flow.
func (l *live) split(ctx context.Context, w *walk, at *model.SplitElement, walks []*walk) (result, error) {
	before := w.splitBefore(at)
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
	begin, end := workslot.ForkSlot(ctx)
	for i, sub := range walks {
		b := &branch{walk: sub}
		branches[i] = b
		slots <- struct{}{}
		if stopping.Load() || l.stopping() {
			<-slots
			b.result = known(stopped("not begun: the job was stopping"))
			continue
		}
		all.Add(1)
		err := l.run.config.Spawn(func() {
			defer all.Done()
			defer func() { <-slots }()
			begin()
			defer end()
			b.err = exception.Guard(func() (err error) {
				b.result, err = b.walk.walk(ctx)
				return err
			})
			if l.run.wasStopped(ctx, b.err) {
				b.result, b.err = known(stopped("stopped on request")), nil
			}
			if b.result.isStopped() {
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
	results := make([]result, len(branches))
	for i, b := range branches {
		errs = append(errs, b.err)
		results[i] = b.result
	}
	return worst(results), errors.Join(errs...)
}

// worst returns the outcome that decides for parallel branches.
func worst(branches []result) result {
	r := branches[0]
	for _, b := range branches[1:] {
		if r.unknown == "" {
			r.unknown = b.unknown
		}
		r.out, r.refused = model.Worse(r.out, b.out), r.refused || b.refused
	}
	return r
}
