package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/workslot"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// JobConfig describes a step that runs another job.
type JobConfig struct {
	Name string
	// Job is the child.
	Job *model.Job
	// Params returns the child's parameters; it is called when the step first starts. nil means none.
	Params func(ctx context.Context, v *core.View) (core.Parameters, error)
	// Confinement returns the child's confinement (rule SE3); nil means none.
	Confinement func(ctx context.Context, v *core.View) *core.Confinement
	// Timeout bounds the child; after it the child ends, and the step fails. 0 means none.
	Timeout time.Duration
	// OnWorkers has worker processes run the child, which must have a job file, since they build it
	// from the stored definition. An attempt with --accept-changes still runs it in its own process.
	OnWorkers bool
	// On restricts those workers; nil means any.
	On *core.Placement
	// Expect is the step's gate, Promote selects the keys copied to the job's context and Listeners
	// makes its listeners; nil means none.
	Expect    *model.Condition
	Promote   *model.Promotion
	Listeners func(ctx context.Context, run *model.StepRun) ([]any, error)
}

// JobStep runs a child job, in this process or on workers: a model.Step of kind "job". The child has an
// instance and executions of its own. Its parameters are stored before it starts, and are the same on
// every restart of the step, so that the same child instance continues (rule F2).
//
// The step ends like the child, with its exit code. Its named results are `execution`, `status` and
// `exit` of the child.
type JobStep struct{ config JobConfig }

// NewJob checks the configuration.
func NewJob(config JobConfig) (*JobStep, error) {
	switch {
	case config.Name == "":
		return nil, errors.New("a job step needs a name")
	case config.Job == nil:
		return nil, fmt.Errorf("job step %s has no job", config.Name)
	case config.OnWorkers && config.Job.Definition.Text == "":
		return nil, fmt.Errorf("job step %s: workers cannot run job %s, which has no job file: run it in this process", config.Name, config.Job.Name)
	}
	return &JobStep{config: config}, nil
}

// Name is the step's name in its flow.
func (s *JobStep) Name() string { return s.config.Name }

// Kind is "job".
func (s *JobStep) Kind() string { return "job" }

// Child returns the job that the step runs.
func (s *JobStep) Child() *model.Job { return s.config.Job }

// OnWorkers reports whether worker processes run the child.
func (s *JobStep) OnWorkers() bool { return s.config.OnWorkers }

// Timeout is the configured limit; 0 means none.
func (s *JobStep) Timeout() time.Duration { return s.config.Timeout }

// Expect is the step's gate.
func (s *JobStep) Expect() *model.Condition { return s.config.Expect }

// Promote selects the keys that the step copies to the job's context.
func (s *JobStep) Promote() *model.Promotion { return s.config.Promote }

// StepListeners makes the step's listeners.
func (s *JobStep) StepListeners(ctx context.Context, run *model.StepRun) ([]any, error) {
	return listenersOf(ctx, run, s.config.Listeners)
}

// Composite marks that the child is bounded by itself.
func (s *JobStep) Composite() {}

// Execute runs the child to its end. A stop of this job stops the child; the end of ctx, and with it
// the loss of this job's ownership, cancels the child.
func (s *JobStep) Execute(ctx context.Context, run *model.StepRun) error {
	if run.Data.Group != nil {
		return fmt.Errorf("child job %s in atomic group %s: %w", s.config.Job.Name, run.Data.Group.Name, ErrInGroup)
	}
	params, err := s.parameters(ctx, run)
	if err != nil {
		return fmt.Errorf("parameters of child job %s: %w", s.config.Job.Name, err)
	}
	job := *s.config.Job
	job.On = s.config.On
	job.Parent, job.ParentCall, job.ParentAnew = run.Data.Job.ID, run.Step.First, run.Data.Job.AnewSince()
	if s.config.Confinement != nil {
		job.Confinement = s.config.Confinement(ctx, run.View())
	}
	child, err := s.run(ctx, run, &job, params)
	if errors.Is(err, ports.ErrParked) {
		return ports.ErrParked
	}
	var complete *ports.InstanceCompleteError
	if errors.As(err, &complete) {
		if call := complete.Execution.ParentCall; call == 0 || call != run.Step.First {
			return s.completed(run, complete)
		}
		child, err = complete.Execution, nil // in an earlier attempt, which could not record it
	}
	if child != nil {
		run.Step.Out = map[string]any{"execution": int64(child.ID), "status": string(child.Status), "exit": child.ExitCode}
	}
	if err != nil {
		return s.refused(err)
	}
	return s.outcome(run, child)
}

// run runs the child. While another execution has its key (rule L12), it waits.
func (s *JobStep) run(ctx context.Context, run *model.StepRun, child *model.Job, params core.Parameters) (*core.JobExecution, error) {
	w := keyWait{job: s.config.Job.Name, run: run, begin: time.Now()}
	for {
		exec, err := s.runNow(ctx, run, child, params)
		refused, is := errors.AsType[*ports.ExclusiveError](err)
		if !is || exec != nil {
			return exec, errors.Join(err, w.over(ctx))
		}
		if err := w.wait(ctx, refused); err != nil {
			return nil, errors.Join(err, w.over(ctx))
		}
	}
}

// runNow runs the child here or on workers.
func (s *JobStep) runNow(ctx context.Context, run *model.StepRun, child *model.Job, params core.Parameters) (*core.JobExecution, error) {
	stop := run.Services.Stop.Done()
	if !s.config.OnWorkers || run.Data.AcceptChanges {
		return run.Services.Jobs.Run(ctx, child, params, stop)
	}
	return run.Services.Jobs.RunOnWorkers(ctx, child, params, model.WorkersRequest{Stop: stop, MayPark: run.Data.MayPark, Resumed: run.Data.Resumed})
}

// completed refuses a child that completed, but not for this step: accepting it would silently leave it
// out (rule F2a).
func (s *JobStep) completed(run *model.StepRun, complete *ports.InstanceCompleteError) error {
	by := "on its own"
	switch parent := complete.Execution.Parent; {
	case parent == run.Data.Job.ID:
		by = "for another step, or another round, of this execution"
	case parent != 0:
		by = fmt.Sprintf("for execution %d", parent)
		if anew := run.Data.Job.AnewSince(); parent < anew {
			by += ", before this job was run again from the start"
		}
	}
	return fmt.Errorf("child job %s has already run with these parameters, %s, and would not run again: "+
		"give it a different identifying parameter (a date, a round), and run this job with other parameters or from its start: %w",
		s.config.Job.Name, by, complete)
}

func (s *JobStep) outcome(run *model.StepRun, child *core.JobExecution) error {
	if child.ExitCode != exitOf(child.Status) {
		run.Step.ExitCode = child.ExitCode
	}
	switch child.Status {
	case core.StatusCompleted:
		return nil
	case core.StatusStopped:
		if run.Stopping() {
			return core.ErrStopped
		}
		return fmt.Errorf("child job %s stopped (execution %d): %s: %w", s.config.Job.Name, child.ID, child.Error, core.ErrStopped)
	case core.StatusUnknown:
		return fmt.Errorf("child job %s (execution %d): %s: %w", s.config.Job.Name, child.ID, child.Error, unknownOutcome(child.Settles))
	default:
		return fmt.Errorf("child job %s is %s (execution %d): %s", s.config.Job.Name, child.Status, child.ID, child.Error)
	}
}

// refused explains why the child did not run, or could not be recorded. A child that was taken over
// does not concern the ownership of this job: the chain ends here.
func (s *JobStep) refused(err error) error {
	var running *ports.AlreadyRunningError
	switch {
	case errors.Is(err, core.ErrLostOwner):
		return fmt.Errorf("child job %s: %v", s.config.Job.Name, err) //nolint:errorlint // the child's owner, not this job's
	case errors.As(err, &running):
		return fmt.Errorf("child job %s cannot start: another execution of the same instance is running: %w", s.config.Job.Name, err)
	case errors.Is(err, ports.ErrAbandoned):
		return fmt.Errorf("child job %s cannot start: its last execution was abandoned, and this step keeps its parameters: abandon this execution as well, or start with other parameters: %w", s.config.Job.Name, err)
	}
	return fmt.Errorf("child job %s cannot start: %w", s.config.Job.Name, err)
}

// parameters returns the stored parameters, or, at the first start and for a new definition of the
// step, the parameters of Params.
func (s *JobStep) parameters(ctx context.Context, run *model.StepRun) (core.Parameters, error) {
	if run.Step.Context == nil {
		run.Step.Context = core.NewExecutionContext()
	}
	if run.Data.Resumed || run.Data.Earlier != nil && !run.Data.NewDefinition {
		if text, ok := run.Step.Context.Get(ports.ChildKey); ok {
			return decodeParameters(text)
		}
	}
	var params core.Parameters
	if s.config.Params != nil {
		var err error
		if params, err = callWithGrace(ctx, run, func(own *model.StepRun) (core.Parameters, error) { return s.config.Params(ctx, own.View()) }); err != nil {
			return core.Parameters{}, err
		}
	}
	text, err := json.Marshal(params)
	if err == nil {
		err = run.Step.Context.Put(ports.ChildKey, string(text))
	}
	if err == nil {
		err = run.Services.Plans.SaveStepContext(ctx, run.Ref, run.Step.Context)
	}
	if err == nil {
		run.Step.Context.Stored()
	}
	return params, err
}

func decodeParameters(stored any) (params core.Parameters, err error) {
	text, ok := stored.(string)
	if !ok {
		return params, fmt.Errorf("the step's context has a %T at key %s", stored, ports.ChildKey)
	}
	if err := json.Unmarshal([]byte(text), &params); err != nil {
		return params, fmt.Errorf("the step's context, %s: %w", ports.ChildKey, err)
	}
	return params, nil
}

const (
	// longestKeyWait bounds the wait for an execution that holds the key of a child job.
	longestKeyWait = 24 * time.Hour
	// longestKeyPause is the longest pause between two launches of a waiting child job.
	longestKeyPause = time.Second
)

// keyWait is the wait of a step for the execution that holds the key of its child job (rule L12). It
// holds no slot of a worker and no connection. A stop, the step's timeout and the loss of the execution
// end it.
type keyWait struct {
	job    string // the child's name
	run    *model.StepRun
	begin  time.Time
	holder core.JobExecutionID // 0 if it has not waited
}

// wait returns when the child may be launched again. It refuses to wait for an execution that needs the
// end of this one.
func (w *keyWait) wait(ctx context.Context, refused *ports.ExclusiveError) error {
	if holder := refused.Running.ExecutionID; holder != w.holder {
		w.holder = holder
		if err := w.store(ctx, func(c *core.ExecutionContext) error { return c.Put(ports.WaitsKey, int64(holder)) }); err != nil {
			return err
		}
		w.run.Services.Observer.Observe(ctx, core.LaunchWaits{
			Execution: w.run.Data.Job.ID, JobName: w.job, Step: w.run.Step.Name, Reason: refused.Error(),
		})
	}
	needed, err := w.run.Services.Jobs.NeedsUs(ctx, w.holder, w.run.Data.Job.ID)
	switch {
	case err != nil:
		return fmt.Errorf("find the executions that execution %d waits for: %w", w.holder, err)
	case needed:
		return fmt.Errorf("%w, but that execution cannot end before this step does", refused)
	case time.Since(w.begin) > longestKeyWait:
		return fmt.Errorf("%w, and waited for it %v", refused, longestKeyWait)
	case w.run.Stopping():
		return core.ErrStopped
	case w.run.IsLeft():
		return ports.ErrParked
	}
	err = workslot.WithoutSlot(ctx, func() error {
		return w.run.Pause(ctx, model.NextLook(time.Since(w.begin), longestKeyPause), false)
	})
	if err == nil && w.run.Stopping() {
		err = core.ErrStopped
	}
	return err
}

func (w *keyWait) over(ctx context.Context) error {
	if w.holder == 0 {
		return nil
	}
	return w.store(context.WithoutCancel(ctx), func(c *core.ExecutionContext) error { c.Delete(ports.WaitsKey); return nil })
}

func (w *keyWait) store(ctx context.Context, change func(c *core.ExecutionContext) error) error {
	if err := change(w.run.Step.Context); err != nil {
		return err
	}
	if err := w.run.Services.Plans.SaveStepContext(ctx, w.run.Ref, w.run.Step.Context); err != nil {
		return fmt.Errorf("store the execution that the step waits for: %w", err)
	}
	w.run.Step.Context.Stored()
	return nil
}
