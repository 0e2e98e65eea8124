package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// branch is one flow of a split.
type branch struct {
	walk *walk
	out  core.Outcome
	err  error
}

// split runs the branches side by side and waits for all. The outcome is that of
// the most severe; an error (of the record, or a refusal) is everybody's.
func (w *walk) split(ctx context.Context, e *core.SplitElement) (core.Outcome, error) {
	branches := make([]*branch, len(e.Branches))
	workers := e.Workers
	if workers <= 0 {
		workers = len(branches)
	}
	slots := make(chan struct{}, workers)
	var stopping atomic.Bool
	var all sync.WaitGroup
	for i, flow := range e.Branches {
		b := &branch{walk: w.sub(e, flow, w.group)}
		branches[i] = b
		slots <- struct{}{}
		if stopping.Load() || w.stop.requested() {
			<-slots
			b.out = stopped("not begun: the job was stopping")
			continue
		}
		all.Add(1)
		err := w.spawn(func() {
			defer all.Done()
			defer func() { <-slots }()
			b.err = exception.Guard(func() (err error) {
				b.out, err = b.walk.walk(ctx)
				return err
			})
			if w.cutOff(ctx, b.err) {
				b.out, b.err = stopped("stopped on request"), nil
			}
			if b.out.Status == core.StatusStopped {
				stopping.Store(true)
			}
		})
		if err != nil {
			all.Done()
			<-slots
			b.err = fmt.Errorf("split %s: branch %d could not be started: %w", e.Name, i+1, err)
		}
	}
	all.Wait()
	return w.join(e, branches)
}

// join takes the branches together.
func (w *walk) join(at core.Element, branches []*branch) (core.Outcome, error) {
	var out core.Outcome
	var errs []error
	walks := make([]*walk, len(branches))
	for i, b := range branches {
		errs = append(errs, b.err)
		if i == 0 {
			out = b.out
		} else {
			out = core.Worse(out, b.out)
		}
		walks[i] = b.walk
	}
	w.leave(at, walks...)
	return out, errors.Join(errs...)
}
