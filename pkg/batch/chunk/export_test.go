package chunk

import (
	"context"
	"sync"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Ahead is the step with a second work that is filled while the first one commits: what
// reading ahead does, without its rules for skips, stops and failures.
type Ahead struct{ *Step }

// Execute runs the step as Step.Execute does.
func (s Ahead) Execute(ctx context.Context, run *core.StepRun) error {
	parts, err := s.assemble(ctx, run)
	if err != nil {
		return err
	}
	p, err := newPipeline(s.Step, run, parts)
	if err != nil {
		return err
	}
	if err := p.open(ctx, position{}); err != nil {
		return err
	}
	current, next := p.begin(), p.filler.newWork()
	if err := p.filler.fill(ctx, current); err != nil {
		return err
	}
	for !current.isEmpty() {
		var filling sync.WaitGroup
		var failure error
		next.reset(current.next, current.skipsBefore+int64(len(current.skips)))
		if !current.last {
			filling.Go(func() { failure = p.filler.fill(ctx, next) })
		}
		p.work = current
		err := p.commitChunk(ctx, current)
		filling.Wait()
		if err != nil {
			return err
		}
		if failure != nil {
			return failure
		}
		current, next = next, current
	}
	return p.close(ctx, nil)
}
