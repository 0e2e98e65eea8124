package step

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// crew runs partitions, some at once.
type crew struct {
	step    *PartitionStep
	run     *core.StepRun
	parts   []part
	results []partResult  // in the order of parts; each is written by who took it
	taken   []atomic.Bool // by a worker, or by who ends its record instead

	slots   chan struct{}
	running sync.WaitGroup
	lost    sync.Once
	gone    chan struct{} // closed when another owner has taken over
}

func newCrew(s *PartitionStep, run *core.StepRun, parts []part) *crew {
	return &crew{
		step: s, run: run, parts: parts, results: make([]partResult, len(parts)), taken: make([]atomic.Bool, len(parts)),
		slots: make(chan struct{}, s.config.Workers), gone: make(chan struct{}),
	}
}

// partResult is how a partition ended. The zero value is one that nothing is known
// of: it counts as failed.
type partResult struct {
	status   core.Status
	exit     string
	message  string
	counters core.Counters
	inHand   core.Counters // the part of counters that is not committed
	lost     error         // core.ErrLostOwner in its chain
}

// work starts one partition after the other as workers become free, and waits for
// all. When a stop is asked for, ctx ends or the ownership is lost, it starts no
// more.
func (c *crew) work(ctx context.Context) {
	begun := 0
	for begun < len(c.parts) && c.free(ctx) {
		c.start(ctx, begun)
		begun++
	}
	over := make(chan struct{})
	go func() {
		c.running.Wait()
		close(over)
	}()
	if !c.wait(ctx, over) {
		c.takeBack(ctx, begun)
		<-over
	}
	if begun < len(c.parts) {
		c.leave(ctx, begun)
	}
}

// wait answers whether ready came before there is nothing to start any more.
func (c *crew) wait(ctx context.Context, ready <-chan struct{}) bool {
	select {
	case <-ready:
		return true
	case <-c.run.Services.Stop.Done():
	case <-ctx.Done():
	case <-c.gone:
	}
	return false
}

// free waits for a worker; false: nothing is to start any more.
func (c *crew) free(ctx context.Context) bool {
	select {
	case c.slots <- struct{}{}:
	case <-c.run.Services.Stop.Done():
		return false
	case <-ctx.Done():
		return false
	case <-c.gone:
		return false
	}
	if c.halted(ctx) { // of several that are ready, select takes any
		<-c.slots
		return false
	}
	return true
}

// halted reports whether there is nothing to start any more.
func (c *crew) halted(ctx context.Context) bool {
	select {
	case <-c.gone:
		return true
	default:
		return ctx.Err() != nil || c.run.Stopping()
	}
}

// start hands a partition to a goroutine. One that is refused has failed.
func (c *crew) start(ctx context.Context, i int) {
	c.running.Add(1)
	err := c.spawn(func() {
		c.take(i, func() partResult {
			if c.halted(ctx) { // it waited in the pool's queue
				return c.unstarted(ctx, &c.parts[i], c.idle(ctx))
			}
			return c.one(ctx, &c.parts[i])
		})
	})
	if err != nil {
		c.take(i, func() partResult {
			return c.unstarted(ctx, &c.parts[i], partResult{
				status: core.StatusFailed, exit: core.ExitFailed, message: fmt.Sprintf("no worker takes it: %v", err),
			})
		})
	}
}

// take has f answer how a partition ended, unless somebody else took it before.
func (c *crew) take(i int, f func() partResult) {
	if !c.taken[i].CompareAndSwap(false, true) {
		return
	}
	defer func() {
		<-c.slots
		c.running.Done()
	}()
	c.results[i] = f()
}

// takeBack ends those that no goroutine of the pool has begun yet, and now will not.
func (c *crew) takeBack(ctx context.Context, begun int) {
	for i := range begun {
		c.take(i, func() partResult { return c.unstarted(ctx, &c.parts[i], c.idle(ctx)) })
	}
}

// idle is how a partition ends that was not started: STOPPED where a stop was asked
// for, else FAILED for the reason that ended the step.
func (c *crew) idle(ctx context.Context) partResult {
	if c.run.Stopping() {
		return partResult{status: core.StatusStopped, exit: core.ExitStopped, message: "stopped on request before it started"}
	}
	return partResult{status: core.StatusFailed, exit: core.ExitFailed, message: fmt.Sprintf("not started: %v", context.Cause(ctx))}
}

func (c *crew) spawn(work func()) error {
	return exception.Guard(func() error { return c.run.Services.Spawner.Spawn(work) })
}

// one runs one partition.
func (c *crew) one(ctx context.Context, p *part) partResult {
	own := c.runOf(p)
	var record *core.StepExecution
	err := exception.Guard(func() (err error) {
		record, err = c.run.Services.Executor.Execute(ctx, c.step.config.Step, own)
		return err
	})
	switch {
	case err == nil && record != nil:
		return partResult{status: record.Status, exit: record.ExitCode, message: record.Error, counters: record.Counters, inHand: record.InHand}
	case err == nil:
		err = errors.New("the step executor answered no record")
	case errors.Is(err, core.ErrLostOwner):
		return c.failing(partResult{}, err)
	}
	result := partResult{status: core.StatusFailed, exit: core.ExitFailed, message: err.Error()}
	if own.Step != nil { // it began: its record is to keep what is committed
		p.record.Epoch, result.counters, result.inHand = own.Ref.Epoch, own.Step.Counters, own.Step.InHand
	}
	return c.unstarted(ctx, p, result)
}

// runOf is what a partition's execution is told: nothing that it changes is shared.
func (c *crew) runOf(p *part) *core.StepRun {
	data, partition, record := c.run.Data, p.Partition, p.record
	data.Name, data.Part, data.Earlier, data.Planned = core.PartName(c.run.RecordName(c.step), p.Name), &partition, p.earlier, &record
	data.Visit, data.Before, data.Parts = core.Visit{}, nil, nil // of the whole step
	return &core.StepRun{Data: data.Clone(), Services: c.run.Services}
}

// unstarted ends the record of a partition that did not run, or whose end is not
// recorded.
func (c *crew) unstarted(ctx context.Context, p *part, result partResult) partResult {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	return c.failing(result, c.end(ctx, p, result))
}

// failing adds to a result that its record could not be written.
func (c *crew) failing(result partResult, err error) partResult {
	if err == nil {
		return result
	}
	result.message += ": " + err.Error()
	if errors.Is(err, core.ErrLostOwner) {
		result.lost = err
		c.lost.Do(func() { close(c.gone) })
	}
	return result
}

func (c *crew) end(ctx context.Context, p *part, result partResult) error {
	ref := core.StepRef{ID: p.record.ID, Owner: p.record.Owner, Epoch: p.record.Epoch}
	_, err := c.run.Services.Plans.EndStep(ctx, ref, core.StepChange{
		To: result.status, ExitCode: result.exit, Error: result.message, Counters: result.counters, InHand: result.inHand,
	})
	return err
}

// leaveBatch is how many records one transaction ends.
const leaveBatch = 500

// leave ends the records of those that were never started, as takeBack does. None
// is written when another owner has taken over: it has ended them.
func (c *crew) leave(ctx context.Context, from int) {
	for ; from < len(c.parts); from += leaveBatch {
		to, result := min(from+leaveBatch, len(c.parts)), c.idle(ctx)
		result = c.failing(result, c.leaveSome(ctx, from, to, result))
		for i := from; i < to; i++ {
			c.results[i] = result
		}
	}
}

func (c *crew) leaveSome(ctx context.Context, from, to int, result partResult) error {
	select {
	case <-c.gone:
		return core.ErrLostOwner
	default:
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	return c.together(ctx, func(ctx context.Context) error {
		for i := from; i < to; i++ {
			if err := c.end(ctx, &c.parts[i], result); err != nil {
				return err
			}
		}
		return nil
	})
}

// together runs f in one transaction where the step's database is the repository's:
// one commit instead of hundreds.
func (c *crew) together(ctx context.Context, f func(ctx context.Context) error) error {
	db := c.step.config.Database
	if db == nil || c.run.Services.Checkpoints == nil || c.run.Services.Checkpoints.Database() != db.Name() {
		return f(ctx)
	}
	return tx.NewManager(db).Do(ctx, tx.Attr{Timeout: recordTime}, f)
}

// exitOf is the exit code of work that ended in this status without one of its own.
func exitOf(s core.Status) string {
	switch s {
	case core.StatusStopped:
		return core.ExitStopped
	case core.StatusUnknown:
		return core.ExitUnknown
	case core.StatusCompleted:
		return core.ExitCompleted
	default:
		return core.ExitFailed
	}
}

// report fills the whole step's record and answers how it ended.
func (c *crew) report(passed []core.StepExecution) error {
	all := make([]partResult, 0, len(passed)+len(c.results))
	for _, p := range passed {
		all = append(all, partResult{status: p.Status, exit: p.ExitCode})
	}
	var sum, inHand core.Counters
	for i, r := range c.results {
		if r.lost != nil {
			return fmt.Errorf("partition %s: %w", c.parts[i].Name, r.lost)
		}
		if r.status == "" || r.status.IsRunning() {
			r.status, r.exit, r.message = core.StatusFailed, core.ExitFailed, "it did not return"
		}
		c.results[i] = r
		sum, inHand = sum.Add(r.counters), inHand.Add(r.inHand)
		all = append(all, r)
	}
	c.run.Step.Counters, c.run.Step.InHand = sum, inHand
	status, exit := aggregate(all)
	c.run.Step.ExitCode = exit
	switch status {
	case core.StatusCompleted:
		return nil
	case core.StatusStopped:
		return core.ErrStopped
	case core.StatusUnknown, core.StatusAbandoned:
		return fmt.Errorf("%s: %w", c.blame(status), core.ErrUnknownOutcome)
	default:
		return errors.New(c.blame(status))
	}
}

// aggregate answers the most severe status, and the exit code of the partitions
// that have it: those of others say nothing about the whole. An exit code that is
// not of the author's making is left to the step executor.
func aggregate(all []partResult) (core.Status, string) {
	status, exit := core.StatusCompleted, ""
	for _, r := range all {
		status = core.MaxStatus(status, r.status)
	}
	for _, r := range all {
		if r.status != status {
			continue
		}
		if exit == "" {
			exit = r.exit
		} else {
			exit = core.AndExit(exit, r.exit)
		}
	}
	if exit == exitOf(status) {
		exit = ""
	}
	return status, exit
}

// blame names the partitions that are to blame, a few of many.
func (c *crew) blame(status core.Status) string {
	var texts []string
	for i, r := range c.results {
		if r.status == status {
			texts = append(texts, fmt.Sprintf("%s: %s", c.parts[i].Name, r.message))
		}
	}
	word := "failed"
	if status != core.StatusFailed {
		word = "ended " + string(status)
	}
	return fmt.Sprintf("%d of %d partitions %s: %s", len(texts), len(c.parts), word, few(texts, "; "))
}
