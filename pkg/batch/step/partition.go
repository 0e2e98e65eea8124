package step

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// PartitionConfig describes a partitioned step.
type PartitionConfig struct {
	// Step does one partition's work; its listeners, gate, promotion and timeout apply to each.
	Step model.Step
	// Workers run at once; 0 means the CPUs, or fewer if Database lacks connections.
	Workers int
	// OnWorkers: worker processes run the partitions; Workers is ignored.
	OnWorkers bool
	// On restricts a part's workers; nil means any.
	On func(part core.Partition) (*core.Placement, error)
	// Partitioner builds the core.Partitioner; the step closes a Closer.
	Partitioner func(ctx context.Context, run *model.StepRun) (core.Partitioner, error)
	// Database has the partitions' transactions; its pool needs room for all workers (rule R6); nil skips the
	// check.
	Database             tx.Database
	AllowStartIfComplete bool

	// Expect sees the sums of all partitions.
	Expect *model.Condition
	// Promote copies keys of the whole step's context.
	Promote *model.Promotion
	// Listeners makes the whole step's BeforeStep and AfterStep listeners.
	Listeners func(ctx context.Context, run *model.StepRun) ([]any, error)
}

// PartitionStep runs a step once per part, several at once, each with its own step execution and components
// (rule P1): kind "partition".
//
// Parts are listed once per instance and stored before any starts. A failed one lets the others finish; a
// restart runs those not completed, from their own positions. Counters are this attempt's sums, the status is
// the most severe, and the exit code comes from partitions with that status (model.AndExit).
type PartitionStep struct {
	config PartitionConfig
	runner model.PartitionRunner
}

// ErrInGroup refuses a partitioned step or a child job in an atomic group: it has its own transactions.
var ErrInGroup = errors.New("it has its own transactions and cannot join the transaction of an atomic group")

// NewPartitioned checks the configuration, and the pool's size.
func NewPartitioned(config PartitionConfig) (*PartitionStep, error) {
	switch {
	case config.Step == nil:
		return nil, errors.New("a partitioned step needs a step")
	case config.Partitioner == nil:
		return nil, fmt.Errorf("partitioned step %s has no partitioner", config.Step.Name())
	case config.Workers < 0:
		return nil, fmt.Errorf("partitioned step %s: workers is %d, but must be positive", config.Step.Name(), config.Workers)
	}
	if config.Workers == 0 {
		config.Workers = defaultWorkers(config.Database)
	}
	if config.Database != nil && !config.OnWorkers {
		if err := CheckPool(config.Database, config.Workers); err != nil {
			return nil, fmt.Errorf("partitioned step %s: %w", config.Step.Name(), err)
		}
	}
	var runner model.PartitionRunner = &partitionPool{workers: config.Workers, database: config.Database}
	if config.OnWorkers {
		runner = &workerPartitions{}
	}
	return &PartitionStep{config: config, runner: runner}, nil
}

// Name returns the inner step's name.
func (s *PartitionStep) Name() string { return s.config.Step.Name() }

// Kind is "partition".
func (s *PartitionStep) Kind() string { return "partition" }

// Inner returns one partition's step.
func (s *PartitionStep) Inner() model.Step { return s.config.Step }

// OnWorkers reports whether worker processes run the partitions.
func (s *PartitionStep) OnWorkers() bool { return s.config.OnWorkers }

// Workers returns the number running at once.
func (s *PartitionStep) Workers() int { return s.config.Workers }

// Expect is the whole step's gate.
func (s *PartitionStep) Expect() *model.Condition { return s.config.Expect }

// Promote selects keys copied to the job's context.
func (s *PartitionStep) Promote() *model.Promotion { return s.config.Promote }

// StepListeners makes the whole step's listeners.
func (s *PartitionStep) StepListeners(ctx context.Context, run *model.StepRun) ([]any, error) {
	return listenersOf(ctx, run, s.config.Listeners)
}

func listenersOf(ctx context.Context, run *model.StepRun, make func(context.Context, *model.StepRun) ([]any, error)) ([]any, error) {
	if make == nil {
		return nil, nil
	}
	return make(ctx, run)
}

// Composite marks that the partitions are bounded by themselves.
func (s *PartitionStep) Composite() {}

// ErrAbandoned if the code still runs DefaultStopTimeout after ctx ended (rule L8).
func callWithGrace[T any](ctx context.Context, run *model.StepRun, f func(own *model.StepRun) (T, error)) (answer T, err error) {
	own := private(run)
	r, ok := model.Await(ctx, model.Go(func() (T, error) { return f(own) }), DefaultStopTimeout, run.Services.Lease.Late(), func() {
		notifyLate(ctx, run, run.Step.Name)
	})
	if !ok {
		return answer, fmt.Errorf("%w (%w)", ErrAbandoned, context.Cause(ctx))
	}
	return r.Value, r.Err
}

// Execute plans the partitions, or takes those an earlier attempt left, and returns when all have ended.
func (s *PartitionStep) Execute(ctx context.Context, run *model.StepRun) error {
	if run.Data.Group != nil {
		return fmt.Errorf("partitioned step %s in atomic group %s: %w", s.Name(), run.Data.Group.Name, ErrInGroup)
	}
	var p plan
	var err error
	if s.runner.ForWorkers() { // it may have been parked
		p, err = s.planned(ctx, run)
	}
	if err == nil && len(p.due) == 0 {
		p, err = s.plan(ctx, run)
	}
	if err != nil {
		return err
	}
	var results []model.PartitionResult
	if len(p.due) > 0 {
		results, err = s.runner.Run(ctx, model.PartitionWork{Step: s.config.Step, Name: run.RecordName(s), Run: run, Parts: p.due})
	}
	if err != nil {
		return err
	}
	return report(run.Step, p.due, results, p.passed)
}

func defaultWorkers(db tx.Database) int {
	workers := runtime.GOMAXPROCS(0)
	if size, bounded := poolOf(db); bounded {
		workers = min(workers, (size-1)/connectionsPerWorker)
	}
	return max(workers, 1)
}

// connectionsPerWorker: one for the transaction, one for reads outside it.
const connectionsPerWorker = 2

// PoolSizer knows how many data connections a database may open.
type PoolSizer interface{ PoolSize() int }

// CheckPool reports a pool in which workers could wait for each other for ever: each needs two connections,
// plus one for all (rule R6). A single-writer database has separate readers and no such limit.
func CheckPool(db tx.Database, workers int) error {
	size, bounded := poolOf(db)
	if need := connectionsPerWorker*workers + 1; bounded && size < need {
		return fmt.Errorf("database %s may open %d connections, but %d workers need %d (two each, plus one): raise max_open to %d (and the size of the application's pool), or lower workers to %d",
			db.Name(), size, workers, need, need, max(1, (size-1)/connectionsPerWorker))
	}
	return nil
}

func poolOf(db tx.Database) (size int, bounded bool) {
	if db == nil || db.SingleWriter() {
		return 0, false
	}
	sizer, ok := db.(PoolSizer)
	if !ok || sizer.PoolSize() <= 0 {
		return 0, false
	}
	return sizer.PoolSize(), true
}
