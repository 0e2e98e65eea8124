package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// StepServices are the ports of a step execution. Fill replaces those that are nil.
type StepServices struct {
	Checkpoints ports.CheckpointStore
	// Stores finds stores for other databases; nil refuses such steps.
	Stores CheckpointStores
	// Plans, Executor and Jobs are for composite steps; nil refuses them.
	Plans    ports.PartitionPlans
	Executor StepExecutor
	Jobs     JobRunner
	// Attempts and Owners (nil: none known dead) are for StepRun.Attempt.
	Attempts ports.Attempts
	Owners   Owners
	Observer core.Observer
	// Stop is the stop request; nil means never.
	Stop StopSignal
	// Spawner runs partitions; nil means goroutines.
	Spawner Spawner
	// Promoter stores job context values; nil fails a promoting step.
	Promoter Promoter
	// Lease is the execution's or part's lease; nil has no end.
	Lease Lease
}

// Fill replaces nil ports by ones that do nothing, or refuse if that would lose data. Checkpoints
// stays nil.
func (s *StepServices) Fill() {
	s.Stores = orElse[CheckpointStores](s.Stores, refusing{})
	s.Plans = orElse[ports.PartitionPlans](s.Plans, refusing{})
	s.Executor = orElse[StepExecutor](s.Executor, refusing{})
	s.Jobs = orElse[JobRunner](s.Jobs, refusing{})
	s.Attempts = orElse[ports.Attempts](s.Attempts, refusing{})
	s.Owners = orElse[Owners](s.Owners, OwnersFunc(func(core.Owner) bool { return false }))
	s.Observer = orElse[core.Observer](s.Observer, core.Observers())
	s.Stop = orElse(s.Stop, StopOn(nil))
	s.Spawner = orElse[Spawner](s.Spawner, SpawnerFunc(func(work func()) error { go work(); return nil }))
	s.Promoter = orElse[Promoter](s.Promoter, refusing{})
	s.Lease = orElse[Lease](s.Lease, unleased{})
}

func orElse[P comparable](port, otherwise P) P {
	var none P
	if port == none {
		return otherwise
	}
	return port
}

// StopSignal is the request to stop: finish the current work, then return ErrStopped.
type StopSignal interface {
	Requested() bool
	Done() <-chan struct{}
	Request()
}

// ReleaseSignal can give a step back: one that returns ErrStopped when Releasing is parked, and
// continues in the same attempt in another process.
type ReleaseSignal interface {
	StopSignal
	Releasing() bool
}

// LeaveSignal is for a composite step, which can be given back only while it waits: it returns
// ErrParked.
type LeaveSignal interface {
	StopSignal
	Left() <-chan struct{}
}

// StopOn returns the signal of a channel; nil means never. Request does nothing.
func StopOn(channel <-chan struct{}) StopSignal { return stopChannel(channel) }

type stopChannel <-chan struct{}

func (c stopChannel) Requested() bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (c stopChannel) Done() <-chan struct{} { return c }

func (c stopChannel) Request() {}

// Spawner runs work on a goroutine, or refuses; it must not wait for its other work.
type Spawner interface {
	Spawn(work func()) error
}

// SpawnerFunc makes a function a Spawner.
type SpawnerFunc func(work func()) error

// Spawn calls f.
func (f SpawnerFunc) Spawn(work func()) error { return f(work) }

// Promoter puts values into the job's context and stores it.
type Promoter interface {
	// Promote runs before the step's end is recorded, in its transaction if any; branches may
	// call it at the same time.
	Promote(ctx context.Context, values map[string]any) error
}

// PromoterFunc makes a function a Promoter.
type PromoterFunc func(ctx context.Context, values map[string]any) error

// Promote calls f.
func (f PromoterFunc) Promote(ctx context.Context, values map[string]any) error {
	return f(ctx, values)
}

// Owners reports the known state of the owners of executions.
type Owners interface {
	IsDead(o core.Owner) bool
}

// OwnersFunc makes a function Owners.
type OwnersFunc func(core.Owner) bool

// IsDead calls f.
func (f OwnersFunc) IsDead(o core.Owner) bool { return f(o) }

// JobRunner runs jobs for steps: a *job.Launcher.
type JobRunner interface {
	Run(ctx context.Context, j *Job, params core.Parameters, stop <-chan struct{}) (*core.JobExecution, error)
	// RunOnWorkers has workers run a child job. ErrParked: not over, and the caller may be parked.
	RunOnWorkers(ctx context.Context, j *Job, params core.Parameters, w WorkersRequest) (*core.JobExecution, error)
	// NeedsUs reports whether execution can end only after waiter (rule L12).
	NeedsUs(ctx context.Context, execution, waiter core.JobExecutionID) (bool, error)
}

// WorkersRequest holds RunOnWorkers' inputs.
type WorkersRequest struct {
	Stop    <-chan struct{}
	MayPark bool
	Resumed bool
}

// ErrNoService refuses a step that needs a service that its launcher lacks.
var ErrNoService = errors.New("the launcher does not support it")

type refusing struct{}

func (refusing) Acquire(_ context.Context, run *StepRun, database string) (ports.ClaimedStore, error) {
	return nil, fmt.Errorf("step %s writes to database %s, but its checkpoints can be kept only in %s",
		run.Step.Name, database, run.Services.Checkpoints.Database())
}

func (refusing) HasCommitted(context.Context, string, core.JobInstanceID, string, core.StepExecutionID) (bool, error) {
	return false, nil
}

func (refusing) PlanPartitions(context.Context, ports.JobRef, ports.PartitionPlan) ([]core.StepExecution, error) {
	return nil, fmt.Errorf("store the plan of partitions: %w", ErrNoService)
}

func (refusing) Partitions(context.Context, core.StepExecutionID) ([]core.StepExecution, error) {
	return nil, fmt.Errorf("read partitions: %w", ErrNoService)
}

func (refusing) OpenParts(context.Context, core.StepExecutionID) (int64, error) {
	return 0, fmt.Errorf("count partitions: %w", ErrNoService)
}

func (refusing) StopPartitions(context.Context, ports.JobRef) error {
	return fmt.Errorf("stop partitions: %w", ErrNoService)
}

func (refusing) BeginStep(context.Context, ports.StepRef) error {
	return fmt.Errorf("start a planned step: %w", ErrNoService)
}

func (refusing) EndStep(context.Context, ports.StepRef, ports.StepChange) (core.Answer, error) {
	return "", fmt.Errorf("end a planned step: %w", ErrNoService)
}

func (refusing) SaveStepContext(context.Context, ports.StepRef, *core.ExecutionContext) error {
	return fmt.Errorf("save the context of a step: %w", ErrNoService)
}

func (refusing) Execute(context.Context, Step, *StepRun) (*core.StepExecution, error) {
	return nil, fmt.Errorf("run a step of a step: %w", ErrNoService)
}

func (refusing) Run(context.Context, *Job, core.Parameters, <-chan struct{}) (*core.JobExecution, error) {
	return nil, fmt.Errorf("run a job for a step: %w", ErrNoService)
}

func (refusing) RunOnWorkers(context.Context, *Job, core.Parameters, WorkersRequest) (*core.JobExecution, error) {
	return nil, fmt.Errorf("run a job on workers for a step: %w", ErrNoService)
}

func (refusing) NeedsUs(context.Context, core.JobExecutionID, core.JobExecutionID) (bool, error) {
	return false, fmt.Errorf("find the executions that an execution waits for: %w", ErrNoService)
}

func (refusing) OpenAttempts(context.Context, core.JobInstanceID, string, core.StepExecutionID, core.StepExecutionID) (string, []core.Owner, error) {
	return "", nil, fmt.Errorf("find the attempts of a step: %w", ErrNoService)
}

func (refusing) LeftBy(context.Context, core.JobInstanceID, string, core.StepExecutionID) ([]item.Position, error) {
	return nil, fmt.Errorf("find the results of earlier attempts: %w", ErrNoService)
}

func (refusing) LastCompleted(context.Context, string, string, core.JobInstanceID) (item.Position, error) {
	return nil, fmt.Errorf("find the last position of the step: %w", ErrNoService)
}

func (refusing) Newest(context.Context, core.JobInstanceID, string) ([]core.StepExecution, error) {
	return nil, fmt.Errorf("read the executions of the step: %w", ErrNoService)
}

func (refusing) LeftBehind(context.Context, core.JobInstanceID) ([]core.LeftBehind, error) {
	return nil, fmt.Errorf("find the results of earlier attempts: %w", ErrNoService)
}

func (refusing) SkippedItems(context.Context, ports.SkipFilter) ([]core.SkippedItem, error) {
	return nil, fmt.Errorf("read skipped items: %w", ErrNoService)
}

func (refusing) LastSkipped(context.Context, ports.SkipFilter) (int64, error) {
	return 0, fmt.Errorf("find the last skipped item: %w", ErrNoService)
}

func (refusing) Promote(context.Context, map[string]any) error {
	return fmt.Errorf("promote values to the job's context: %w", ErrNoService)
}

// CheckpointStores finds the stores of databases other than the repository's
// (rule C18).
type CheckpointStores interface {
	// Acquire makes run's attempt the only one of its step that commits there; earlier commits are
	// copied to the repository. ErrLostOwner if a later attempt has acquired it.
	Acquire(ctx context.Context, run *StepRun, database string) (ports.ClaimedStore, error)
	ports.CheckpointReader
}

type unleased struct{}

func (unleased) Err() error { return nil }

func (unleased) Late() <-chan struct{} { return nil }

func (unleased) Record(ctx context.Context, write func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(WithPatience(ctx, nil), recordTime)
	defer cancel()
	return write(ctx)
}
