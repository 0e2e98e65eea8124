package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// TaskletConfig describes a tasklet step.
type TaskletConfig struct {
	Name string
	// Database is where the step's transaction is.
	Database tx.Database
	// Attr says what transaction the tasklet runs in; zero: REQUIRED.
	Attr tx.Attr
	// Timeout ends the step with a failure when it is over; 0: none.
	Timeout time.Duration
	// Assemble makes the tasklet of one step execution.
	Assemble func(ctx context.Context, run *core.StepRun) (core.Tasklet, error)
}

// TaskletStep is a step whose work is one tasklet: a core.Step.
type TaskletStep struct {
	config TaskletConfig
	tx     *tx.Manager
}

// NewTasklet checks the configuration, including what the database cannot do of
// the transaction asked for (rule T4).
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

// Transaction is what the executor opens for the tasklet.
func (s *TaskletStep) Transaction() (*tx.Manager, tx.Attr) { return s.tx, s.config.Attr }

// Execute runs the tasklet once, in the transaction that ctx carries.
func (s *TaskletStep) Execute(ctx context.Context, run *core.StepRun) (err error) {
	tasklet, err := s.config.Assemble(ctx, run)
	if err != nil {
		return err
	}
	if closer, ok := tasklet.(core.Closer); ok {
		defer func() { err = errors.Join(err, closer.Close(context.WithoutCancel(ctx))) }()
	}
	record := run.Step
	if record.Context == nil {
		record.Context = core.NewExecutionContext()
	}
	c := &core.StepContribution{Context: record.Context, Step: *record, Params: run.Job.Params}
	err = tasklet.Execute(ctx, c)
	record.Counters = record.Counters.Add(c.Counters)
	record.Out = c.Out
	record.ExitCode = c.ExitCode
	return err
}
