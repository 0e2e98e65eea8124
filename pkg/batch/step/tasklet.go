package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// TaskletConfig describes a tasklet step.
type TaskletConfig struct {
	Name string
	// Database is the database of the step's transaction.
	Database tx.Database
	// Attr selects the tasklet's transaction; zero means REQUIRED.
	Attr tx.Attr
	// Retry selects the failures after which the tasklet is made and run again; zero means none. In a
	// group there is no retry.
	Retry model.Retry
	// Timeout bounds all attempts together; after it the step fails. 0 means none.
	Timeout time.Duration
	// Assemble makes the tasklet of one step execution.
	Assemble func(ctx context.Context, run *model.StepRun) (core.Tasklet, error)
	// Listeners makes the listeners of one step execution, of any of the interfaces BeforeStep and
	// AfterStep; nil means none.
	Listeners func(ctx context.Context, run *model.StepRun) ([]any, error)
	// Expect must hold for the step to complete when its work is done; otherwise its transaction is
	// rolled back. nil expects nothing.
	Expect *model.Condition
	// Promote copies keys of the step's context to the job's; nil means none.
	Promote *model.Promotion
}

// TaskletStep is a step of one tasklet: a model.Step.
type TaskletStep struct {
	config TaskletConfig
	tx     *tx.Manager
}

// NewTasklet checks the configuration, including whether the database supports the requested
// transaction (rule T4).
func NewTasklet(config TaskletConfig) (*TaskletStep, error) {
	switch {
	case config.Name == "":
		return nil, errors.New("a tasklet step needs a name")
	case config.Database == nil:
		return nil, fmt.Errorf("tasklet step %s needs a database", config.Name)
	case config.Assemble == nil:
		return nil, fmt.Errorf("tasklet step %s has no tasklet", config.Name)
	}
	if err := config.Database.Check(config.Attr); err != nil {
		return nil, fmt.Errorf("tasklet step %s: %w", config.Name, err)
	}
	return &TaskletStep{config: config, tx: tx.NewManager(config.Database)}, nil
}

// Name is the step's name in its flow.
func (s *TaskletStep) Name() string { return s.config.Name }

// Kind is "tasklet".
func (s *TaskletStep) Kind() string { return "tasklet" }

// Timeout is the configured limit; 0 means none.
func (s *TaskletStep) Timeout() time.Duration { return s.config.Timeout }

// Retry selects the failures after which the tasklet runs again.
func (s *TaskletStep) Retry() model.Retry { return s.config.Retry }

// Transaction returns the transaction that the executor opens for the tasklet.
func (s *TaskletStep) Transaction() (*tx.Manager, tx.Attr) { return s.tx, s.config.Attr }

// StepListeners makes the listeners of one execution.
func (s *TaskletStep) StepListeners(ctx context.Context, run *model.StepRun) ([]any, error) {
	if s.config.Listeners == nil {
		return nil, nil
	}
	return s.config.Listeners(ctx, run)
}

// Expect is the step's gate, or nil.
func (s *TaskletStep) Expect() *model.Condition { return s.config.Expect }

// Promote selects the keys that the step copies to the job's context, or nil.
func (s *TaskletStep) Promote() *model.Promotion { return s.config.Promote }

// Execute runs the tasklet once, in the transaction that ctx carries.
func (s *TaskletStep) Execute(ctx context.Context, run *model.StepRun) (err error) {
	tasklet, err := s.config.Assemble(ctx, run)
	if err != nil {
		return err
	}
	if closer, ok := tasklet.(item.Closer); ok {
		defer func() { err = errors.Join(err, closer.Close(context.WithoutCancel(ctx))) }()
	}
	if err := run.Join(ctx, []any{tasklet}); err != nil {
		return err
	}
	record := run.Step
	if record.Context == nil {
		record.Context = core.NewExecutionContext()
	}
	view, seen := run.View(), *record
	view.Step = &seen
	c := &core.StepContribution{Context: record.Context, Step: seen, Params: run.Data.Job.Params, View: view, Stop: run.Services.Stop.Done()}
	c.Save = func(ctx context.Context) error {
		if err := run.Services.Plans.SaveStepContext(ctx, run.Ref, record.Context); err != nil {
			return fmt.Errorf("save the context of the step: %w", err)
		}
		record.Context.Stored()
		return nil
	}
	if err := run.Services.Lease.Err(); err != nil { // without a transaction there is no guard
		return err
	}
	over := notifyStop(ctx, tasklet, run)
	defer over()
	err = tasklet.Execute(ctx, c)
	record.Counters = record.Counters.Add(c.Counters)
	record.Out = c.Out
	record.ExitCode = c.ExitCode
	return err
}

// notifyStop notifies a tasklet of a stop while it executes, once. over ends that, and waits for a call
// in progress, and ends its context: the tasklet may be closed then.
func notifyStop(ctx context.Context, tasklet core.Tasklet, run *model.StepRun) (over func()) {
	stoppable, ok := tasklet.(core.Stoppable)
	if !ok {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
			return
		case <-run.Services.Stop.Done():
		}
		err := panics.GuardApart(func() error { return stoppable.StopRequested(ctx) })
		if err != nil && !errors.Is(err, context.Canceled) {
			run.Services.Observer.Observe(ctx, core.StopFailed{Execution: run.Data.Job.ID, Step: run.Step.Name, Err: err})
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
