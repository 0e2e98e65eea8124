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
	// Checkpoints stores the progress of a chunk step: the repository, or the store that
	// StepRun.UseDatabase put in its place.
	Checkpoints ports.CheckpointStore
	// Stores finds the store for steps that work in databases other than the repository's; nil means
	// that they are refused.
	Stores CheckpointStores
	// Plans, Executor and Jobs are for steps made of other steps or jobs; nil means that those are
	// refused.
	Plans    Plans
	Executor StepExecutor
	Jobs     JobRunner
	// Attempts finds earlier attempts, and Owners reports owners that are known to be dead (nil means
	// none); see StepRun.Attempt.
	Attempts Attempts
	Owners   Owners
	// Observer may be nil.
	Observer core.Observer
	// Stop is the stop request; nil means that there never is one.
	Stop StopSignal
	// Spawner runs partitions; nil means each on a goroutine of its own.
	Spawner Spawner
	// Promoter stores values in the job's context; nil means that a step that promotes fails.
	Promoter Promoter
	// Lease is the lease of the execution, or of the worker's part; nil means that it has no end.
	Lease Lease
}

// Fill replaces every nil port by one that does nothing, or that refuses if doing nothing would lose
// data. Checkpoints stays nil.
func (s *StepServices) Fill() {
	s.Stores = orElse[CheckpointStores](s.Stores, refusing{})
	s.Plans = orElse[Plans](s.Plans, refusing{})
	s.Executor = orElse[StepExecutor](s.Executor, refusing{})
	s.Jobs = orElse[JobRunner](s.Jobs, refusing{})
	s.Attempts = orElse[Attempts](s.Attempts, refusing{})
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

// Plans stores the parts of a step, and the memory of steps made of other steps or jobs.
type Plans interface {
	ports.PartitionPlans
	// EndStep ends a partition that does not begin: see ports.Transitions.
	EndStep(ctx context.Context, ref ports.StepRef, change ports.StepChange) (core.Answer, error)
	// SaveStepContext: see ports.Transitions.
	SaveStepContext(ctx context.Context, ref ports.StepRef, c *core.ExecutionContext) error
}

// Attempts reads the attempts of a step, and the skipped items that a step reports.
type Attempts interface {
	ports.Attempts
	ports.SkipReader
}

// StopSignal is the request to stop: finish the current work, then return ErrStopped.
type StopSignal interface {
	// Requested reports whether a stop was requested.
	Requested() bool
	// Done returns a channel that is closed when a stop is requested. It may be closed shortly after
	// Requested has begun to report it.
	Done() <-chan struct{}
	// Request passes on a request that the step found in the database.
	Request()
}

// ReleaseSignal is the StopSignal of a step that can be given back: one that returns ErrStopped when
// Releasing is parked, and executed again in the same attempt by another process.
type ReleaseSignal interface {
	StopSignal
	// Releasing reports whether the step is to be given back, and its job is not to stop.
	Releasing() bool
}

// LeaveSignal is the StopSignal of a step made of other steps or jobs. It can be given back only while
// it waits for work in other processes: it returns ErrParked.
type LeaveSignal interface {
	StopSignal
	// Left returns a channel that is closed when the step is to be given back.
	Left() <-chan struct{}
}

// StopOn returns the signal of a channel that the caller closes; nil means that it is never closed.
// Request does nothing.
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

// Spawner runs work on a goroutine of its own, or refuses. It must not wait for other work that it was
// given.
type Spawner interface {
	Spawn(work func()) error
}

// SpawnerFunc makes a function a Spawner.
type SpawnerFunc func(work func()) error

// Spawn calls f.
func (f SpawnerFunc) Spawn(work func()) error { return f(work) }

// Promoter puts values into the job's context and stores it.
type Promoter interface {
	// Promote is called by the step executor before the step's end is recorded, and in the same
	// transaction if there is one. Branches of a split may call it at the same time.
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
	// IsDead reports whether the owner is known to be dead.
	IsDead(o core.Owner) bool
}

// OwnersFunc makes a function Owners.
type OwnersFunc func(core.Owner) bool

// IsDead calls f.
func (f OwnersFunc) IsDead(o core.Owner) bool { return f(o) }

// JobRunner runs jobs for steps: a *job.Launcher.
type JobRunner interface {
	// Run runs a job to its end in this process.
	Run(ctx context.Context, j *Job, params core.Parameters, stop <-chan struct{}) (*core.JobExecution, error)
	// RunOnWorkers has worker processes run a child job, and returns its execution when it is over.
	// ErrParked means that it is not over, and the caller's execution can be parked until then.
	RunOnWorkers(ctx context.Context, j *Job, params core.Parameters, w WorkersRequest) (*core.JobExecution, error)
	// NeedsUs reports whether execution can end only after waiter: it is waiter, or a parent of it, or
	// waits for one of these (rule L12).
	NeedsUs(ctx context.Context, execution, waiter core.JobExecutionID) (bool, error)
}

// WorkersRequest holds the inputs of JobRunner.RunOnWorkers other than the job.
type WorkersRequest struct {
	// Stop requests a stop of the child, like the stop of JobRunner.Run.
	Stop <-chan struct{}
	// MayPark means that the caller's execution can be parked.
	MayPark bool
	// Resumed means that the caller's execution was parked: the child has been launched.
	Resumed bool
}

// ErrNoService refuses a step that needs a service that its launcher lacks.
var ErrNoService = errors.New("the launcher does not support it")

// refusing is every port that must not be missing unnoticed.
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

func (refusing) SaveStepPosition(context.Context, ports.StepRef, item.Position) error {
	return fmt.Errorf("store the position of a step: %w", ErrNoService)
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

func (refusing) LeftBehind(context.Context, core.JobInstanceID) ([]ports.LeftBehind, error) {
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
	// Acquire makes run's attempt the only one of its step that commits in the database, and returns
	// its store. An attempt that acquired the step before commits nothing there from now on; its
	// commits are copied into the repository. ErrLostOwner if a later attempt has acquired the step.
	Acquire(ctx context.Context, run *StepRun, database string) (ports.ClaimedStore, error)
	ports.CheckpointReader
}

// unleased is the Lease of work that no other owner takes over.
type unleased struct{}

func (unleased) Err() error { return nil }

func (unleased) Late() <-chan struct{} { return nil }

func (unleased) Record(ctx context.Context, write func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(WithPatience(ctx, nil), recordTime)
	defer cancel()
	return write(ctx)
}
