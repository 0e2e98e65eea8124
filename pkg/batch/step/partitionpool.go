package step

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/workslot"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// partitionPool runs partitions in this process, several at once: the default model.PartitionRunner of a
// step.
type partitionPool struct {
	workers  int
	database tx.Database
}

// ForWorkers is false: the partitions belong to the owner of the job.
func (p *partitionPool) ForWorkers() bool { return false }

// Run runs the partitions. It returns when all of them have ended.
func (p *partitionPool) Run(ctx context.Context, work model.PartitionWork) ([]model.PartitionResult, error) {
	b := newBatch(p, work)
	b.work(ctx)
	return b.results, nil
}

// batch is the pool's work for one execution of a step.
type batch struct {
	pool    *partitionPool
	step    model.Step
	name    string
	run     *model.StepRun
	parts   []model.PlannedPartition
	results []model.PartitionResult // in the order of parts; each is written by its taker
	taken   []atomic.Bool           // by a worker, or by the code that ends its record instead

	slots chan struct{}
	// enter and leave are called by each worker around its partition.
	enter, leave func()
	running      sync.WaitGroup
	lost         sync.Once
	lostOwner    chan struct{} // closed when another owner has taken over
}

func newBatch(p *partitionPool, work model.PartitionWork) *batch {
	n := len(work.Parts)
	return &batch{
		pool: p, step: work.Step, name: work.Name, run: work.Run, parts: work.Parts,
		results: make([]model.PartitionResult, n), taken: make([]atomic.Bool, n),
		slots: make(chan struct{}, p.workers), lostOwner: make(chan struct{}),
	}
}

// work starts one partition after the other as workers become free, and waits for all. When a stop is
// requested, ctx ends or the ownership is lost, it starts no more.
func (b *batch) work(ctx context.Context) {
	b.enter, b.leave = workslot.ForkSlot(ctx)
	begun := 0
	for begun < len(b.parts) && b.free(ctx) {
		b.start(ctx, begun)
		begun++
	}
	over := make(chan struct{})
	go func() {
		b.running.Wait()
		close(over)
	}()
	if !b.wait(ctx, over) {
		b.cancelQueued(ctx, begun)
		<-over
	}
	if begun < len(b.parts) {
		b.endUnstarted(ctx, begun)
	}
}

// wait reports whether ready came before the pool may start no more partitions.
func (b *batch) wait(ctx context.Context, ready <-chan struct{}) bool {
	select {
	case <-ready:
		return true
	case <-b.run.Services.Stop.Done():
	case <-ctx.Done():
	case <-b.lostOwner:
	}
	return false
}

// free waits for a worker; false means that no more partitions may start.
func (b *batch) free(ctx context.Context) bool {
	select {
	case b.slots <- struct{}{}:
	case <-b.run.Services.Stop.Done():
		return false
	case <-ctx.Done():
		return false
	case <-b.lostOwner:
		return false
	}
	if b.halted(ctx) { // select picks any of several ready channels
		<-b.slots
		return false
	}
	return true
}

// halted reports whether no more partitions may start.
func (b *batch) halted(ctx context.Context) bool {
	select {
	case <-b.lostOwner:
		return true
	default:
		return ctx.Err() != nil || b.run.Stopping()
	}
}

// start passes a partition to a goroutine. A refused one has failed.
func (b *batch) start(ctx context.Context, i int) {
	b.running.Add(1)
	err := b.spawn(func() {
		b.take(i, func() model.PartitionResult {
			if b.halted(ctx) { // it waited in the pool's queue
				return b.unstarted(ctx, &b.parts[i], b.unstartedResult(ctx))
			}
			b.enter()
			defer b.leave()
			return b.one(ctx, &b.parts[i])
		})
	})
	if err != nil {
		b.take(i, func() model.PartitionResult {
			return b.unstarted(ctx, &b.parts[i], model.PartitionResult{
				Status: core.StatusFailed, ExitCode: core.ExitFailed, Message: fmt.Sprintf("no worker accepts it: %v", err),
			})
		})
	}
}

// take sets the result of a partition from f, unless it was taken before.
func (b *batch) take(i int, f func() model.PartitionResult) {
	if !b.taken[i].CompareAndSwap(false, true) {
		return
	}
	defer func() {
		<-b.slots
		b.running.Done()
	}()
	b.results[i] = f()
}

// cancelQueued ends the partitions that no goroutine of the pool has begun yet, and now will not.
func (b *batch) cancelQueued(ctx context.Context, begun int) {
	for i := range begun {
		b.take(i, func() model.PartitionResult { return b.unstarted(ctx, &b.parts[i], b.unstartedResult(ctx)) })
	}
}

// unstartedResult returns the end of a partition that was not started: STOPPED if a stop was requested,
// otherwise FAILED for the reason that ended the step.
func (b *batch) unstartedResult(ctx context.Context) model.PartitionResult {
	if b.run.Stopping() {
		return stoppedUnstarted()
	}
	return model.PartitionResult{Status: core.StatusFailed, ExitCode: core.ExitFailed, Message: fmt.Sprintf("not started: %v", context.Cause(ctx))}
}

func stoppedUnstarted() model.PartitionResult {
	return model.PartitionResult{Status: core.StatusStopped, ExitCode: core.ExitStopped, Message: "stopped on request before it started"}
}

func (b *batch) spawn(work func()) error {
	return panics.Guard(func() error { return b.run.Services.Spawner.Spawn(work) })
}

func (b *batch) one(ctx context.Context, p *model.PlannedPartition) model.PartitionResult {
	own := b.runOf(p)
	var record *core.StepExecution
	err := panics.Guard(func() (err error) {
		record, err = b.run.Services.Executor.Execute(ctx, b.step, own)
		return err
	})
	switch {
	case err == nil && record != nil:
		return model.PartitionResult{Status: record.Status, ExitCode: record.ExitCode, Message: record.Error, Settles: record.Settles, Counters: record.Counters, InHand: record.InHand}
	case err == nil:
		err = errors.New("the step executor returned no execution")
	case errors.Is(err, core.ErrLostOwner):
		return b.failing(model.PartitionResult{}, err)
	case errors.Is(err, core.ErrStopped) && own.Step == nil: // the database has the request
		b.run.Services.Stop.Request()
		return b.unstarted(ctx, p, stoppedUnstarted())
	}
	result := model.PartitionResult{Status: core.StatusFailed, ExitCode: core.ExitFailed, Message: err.Error()}
	if own.Step != nil { // it began: its record must keep the committed state
		p.Record.Epoch, result.Counters, result.InHand = own.Ref.Epoch, own.Step.Counters, own.Step.InHand
	}
	return b.unstarted(ctx, p, result)
}

// runOf returns the run of a partition. It shares nothing that the partition changes.
func (b *batch) runOf(p *model.PlannedPartition) *model.StepRun {
	data, partition, record := b.run.Data, p.Partition, p.Record
	data.Name, data.Part, data.Earlier, data.Planned = core.PartName(b.name, p.Name), &partition, p.Earlier, &record
	data.Visit, data.Before, data.Parts, data.NewDefinition = core.Visit{}, nil, nil, false // of the whole step
	return &model.StepRun{Data: data.Clone(), Services: b.run.Services}
}

// unstarted ends the record of a partition that did not run, or has no recorded end.
func (b *batch) unstarted(ctx context.Context, p *model.PlannedPartition, result model.PartitionResult) model.PartitionResult {
	ended := result
	err := b.run.Services.Lease.Record(context.WithoutCancel(ctx), func(ctx context.Context) (err error) {
		ended, err = b.end(ctx, p, result)
		return err
	})
	return b.failing(ended, err)
}

// failing adds to a result that its record could not be written.
func (b *batch) failing(result model.PartitionResult, err error) model.PartitionResult {
	if err == nil {
		return result
	}
	result.Message += ": " + err.Error()
	if errors.Is(err, core.ErrLostOwner) {
		result.Lost = err
		b.lost.Do(func() { close(b.lostOwner) })
	}
	return result
}

// end writes the end of a partition. If the record has ended before, by a move with a lost reply, that
// end is the result.
func (b *batch) end(ctx context.Context, p *model.PlannedPartition, result model.PartitionResult) (model.PartitionResult, error) {
	ref := ports.StepRef{ID: p.Record.ID, Owner: p.Record.Owner, Epoch: p.Record.Epoch}
	_, err := b.run.Services.Plans.EndStep(ctx, ref, ports.StepChange{
		To: result.Status, ExitCode: result.ExitCode, Error: result.Message, Counters: result.Counters, InHand: result.InHand, Part: true,
	})
	if found, mine := ports.FoundIn(err); mine && found.IsOver() {
		return model.PartitionResult{Status: found, ExitCode: exitOf(found), Message: result.Message, Counters: result.Counters, InHand: result.InHand}, nil
	}
	return result, err
}

// unstartedBatch is the number of records that one transaction ends.
const unstartedBatch = 500

// endUnstarted ends the records of partitions that were never started, as cancelQueued does. It writes
// none if another owner has taken over: that owner has ended them.
func (b *batch) endUnstarted(ctx context.Context, from int) {
	for ; from < len(b.parts); from += unstartedBatch {
		to, result := min(from+unstartedBatch, len(b.parts)), b.unstartedResult(ctx)
		result = b.failing(result, b.endUnstartedBatch(ctx, from, to, result))
		for i := from; i < to; i++ {
			b.results[i] = result
		}
	}
}

func (b *batch) endUnstartedBatch(ctx context.Context, from, to int, result model.PartitionResult) error {
	select {
	case <-b.lostOwner:
		return core.ErrLostOwner
	default:
	}
	return b.run.Services.Lease.Record(context.WithoutCancel(ctx), func(ctx context.Context) error {
		return b.together(ctx, func(ctx context.Context) error {
			for i := from; i < to; i++ {
				if _, err := b.end(ctx, &b.parts[i], result); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// together runs f in one transaction if the step's database is the repository's: one commit instead of
// hundreds.
func (b *batch) together(ctx context.Context, f func(ctx context.Context) error) error {
	db := b.pool.database
	if db == nil || b.run.Services.Checkpoints == nil || b.run.Services.Checkpoints.Database() != db.Name() {
		return f(ctx)
	}
	return tx.NewManager(db).Do(ctx, tx.Attr{Timeout: recordTime}, f)
}

// workerPartitions has worker processes run the partitions: a model.PartitionRunner. The execution is
// parked if the walk can be; otherwise, as in parallel branches or in a child job, the step keeps its
// slot and waits.
type workerPartitions struct{}

// ForWorkers is true: any worker may take a partition.
func (w *workerPartitions) ForWorkers() bool { return true }

// Run returns how the partitions ended, once all of them have.
func (w *workerPartitions) Run(ctx context.Context, work model.PartitionWork) ([]model.PartitionResult, error) {
	if err := work.Run.AwaitParts(ctx, longestPoll); err != nil {
		return nil, err
	}
	return w.results(ctx, work.Run)
}

func (w *workerPartitions) results(ctx context.Context, run *model.StepRun) ([]model.PartitionResult, error) {
	records, err := run.Services.Plans.Partitions(ctx, run.Step.ID)
	if err != nil {
		return nil, err
	}
	results := make([]model.PartitionResult, len(records))
	for i, r := range records {
		results[i] = model.PartitionResult{Status: r.Status, ExitCode: r.ExitCode, Message: r.Error, Settles: r.Settles, Counters: r.Counters, InHand: r.InHand}
	}
	return results, nil
}
