package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// PartitionConfig describes a partitioned step.
type PartitionConfig struct {
	// Step does the work of one partition. Its listeners, gate, promotion and timeout apply to each
	// partition.
	Step model.Step
	// Workers is the number of partitions that run at once; 0 means the number of CPUs, or fewer if
	// Database lacks the connections.
	Workers int
	// OnWorkers has worker processes run the partitions: Workers is ignored then.
	OnWorkers bool
	// On restricts the workers that may do a part; nil means any.
	On func(part core.Partition) (*core.Placement, error)
	// Partitioner builds the core.Partitioner that lists the step's partitions. If it implements
	// Closer, the step closes it.
	Partitioner func(ctx context.Context, run *model.StepRun) (core.Partitioner, error)
	// Database is the database of the partitions' transactions; its pool needs room for all workers
	// (rule R6); nil skips that check.
	Database tx.Database
	// AllowStartIfComplete also runs the completed partitions on the restart of a step that failed or
	// stopped.
	AllowStartIfComplete bool

	// Expect is the gate of the whole step: it sees the sums of all partitions. nil means none.
	Expect *model.Condition
	// Promote copies keys of the whole step's context, not of the partitions'; nil means none.
	Promote *model.Promotion
	// Listeners makes listeners of the whole step, BeforeStep and AfterStep; nil means none.
	Listeners func(ctx context.Context, run *model.StepRun) ([]any, error)
}

// PartitionStep runs a step once for each part of its work, several at once, each with a step execution
// and components of its own (rule P1): a model.Step of kind "partition".
//
// The parts are listed once per instance and stored before any of them starts. A partition that fails
// lets the others finish; a restart runs those that did not complete, each from its own position. The
// step's counters are the sums over its partitions in this attempt, its status is their most severe
// one, and its exit code comes from the partitions with this status (model.AndExit).
type PartitionStep struct {
	config PartitionConfig
	runner model.PartitionRunner
}

// NewPartitioned checks the configuration, and that the pool of the database is
// large enough for the workers.
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

// Name returns the name of the step that does the work.
func (s *PartitionStep) Name() string { return s.config.Step.Name() }

// Kind is "partition".
func (s *PartitionStep) Kind() string { return "partition" }

// Inner returns the step that does the work of one partition.
func (s *PartitionStep) Inner() model.Step { return s.config.Step }

// OnWorkers reports whether worker processes run the partitions.
func (s *PartitionStep) OnWorkers() bool { return s.config.OnWorkers }

// Workers returns the number of partitions that run at once.
func (s *PartitionStep) Workers() int { return s.config.Workers }

// Expect is the gate of the whole step.
func (s *PartitionStep) Expect() *model.Condition { return s.config.Expect }

// Promote selects the keys that the whole step copies to the job's context.
func (s *PartitionStep) Promote() *model.Promotion { return s.config.Promote }

// StepListeners makes the listeners of the whole step.
func (s *PartitionStep) StepListeners(ctx context.Context, run *model.StepRun) ([]any, error) {
	return listenersOf(ctx, run, s.config.Listeners)
}

// Composite marks that the partitions are bounded by themselves.
func (s *PartitionStep) Composite() {}

// Execute plans the partitions, or those that an earlier attempt left, and runs them. It returns when
// all of them have ended.
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
	if err := report(run.Step, p.due, results, p.passed); err != nil {
		return err
	}
	return s.join(ctx, run, p.passed)
}

// join publishes the output of all parts as one (rule C15w).
func (s *PartitionStep) join(ctx context.Context, run *model.StepRun, passed []core.StepExecution) error {
	inner, ok := s.config.Step.(model.PartsJoiner)
	if !ok || !inner.JoinsParts() {
		return nil
	}
	records, err := run.Services.Plans.Partitions(ctx, run.Step.ID)
	if err != nil {
		return err
	}
	all := append(slices.Clone(passed), records...)
	slices.SortStableFunc(all, func(a, b core.StepExecution) int {
		return cmp.Or(cmp.Compare(indexOf(a), indexOf(b)), strings.Compare(a.Name, b.Name))
	})
	own := *run // the writers of the whole step may name values of a part
	if len(all) > 0 {
		first := ports.PartitionOf(run.RecordName(s), all[0])
		own.Data.Part = &first
	}
	return inner.JoinParts(ctx, &own, all)
}

// defaultWorkers returns the number of CPUs, limited by the database's connections.
func defaultWorkers(db tx.Database) int {
	workers := runtime.GOMAXPROCS(0)
	if size, bounded := poolOf(db); bounded {
		workers = min(workers, (size-1)/connectionsPerWorker)
	}
	return max(workers, 1)
}

// connectionsPerWorker: one for the transaction, one for reads outside it.
const connectionsPerWorker = 2

// PoolSizer is implemented by databases that know how many connections they may
// open for data.
type PoolSizer interface{ PoolSize() int }

// CheckPool reports a pool in which that many workers could wait for each other's connections for ever:
// each needs two, and one more is needed for all (rule R6). A database with one writer has separate
// readers, and returns each connection after the statement: it has no such limit.
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

// plan is the work of this attempt, and the finished work of earlier ones.
type plan struct {
	due    []model.PlannedPartition
	passed []core.StepExecution
}
