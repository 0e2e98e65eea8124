package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// JobTask is the payload of a task of type job.
type JobTask struct {
	// Job is the name of a job that every worker knows: one that is registered, or that the
	// application carries.
	Job string `json:"job"`
	// Params, Again, Next, FromStart and AcceptChanges are as in RunRequest.
	Params        map[string]string `json:"params,omitempty"`
	Again         bool              `json:"again,omitempty"`
	Next          bool              `json:"next,omitempty"`
	FromStart     bool              `json:"from_start,omitempty"`
	AcceptChanges bool              `json:"accept_changes,omitempty"`
	// Retry lets the decider restart an execution that failed. Without it only what its
	// worker left is restarted.
	Retry bool `json:"retry,omitempty"`
}

// NewJobHandler returns the handler of tasks of type job. A task has one execution and its
// restarts: an attempt after the first restarts the execution of the one before, and waits
// where that runs elsewhere. While an execution is parked, the handler is idle.
func NewJobHandler(s *Service) task.Handler { return jobHandler{s} }

type jobHandler struct{ service *Service }

// Composite marks that what it runs is bounded by rules of its own: a worker waits for it.
func (jobHandler) Composite() {}

// waitPause is the time between two looks at an execution that another process runs.
const waitPause = time.Second

// Execute implements task.Handler.
func (h jobHandler) Execute(ctx context.Context, t task.Task) (task.Outcome, error) {
	var asked JobTask
	decoder := json.NewDecoder(bytes.NewReader(t.Spec.Payload))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil || asked.Job == "" {
		return fatal(fmt.Sprintf("the payload of a task of type job needs a job, and may have params, again, next, from_start, accept_changes and retry: %v", err)), nil
	}
	first := true
	for {
		running, last, err := h.begin(ctx, t, asked, first)
		first = false
		switch {
		case err != nil && (last == nil || !isRunning(err)):
			return refusedTask(err), nil
		case err == nil && running != nil:
			last, err = h.follow(ctx, running)
			if err != nil {
				return task.Outcome{}, err
			}
		}
		if last != nil && last.Status.IsOver() {
			return h.outcome(ctx, last, asked), nil
		}
		task.Idle(ctx) // parked, or another process has it
		if err := h.pause(ctx, last); err != nil {
			return task.Outcome{}, err
		}
	}
}

// begin launches what the task asks for. Where the task has an execution that is over, and
// this is its first look in this attempt, it is restarted, unless it is complete.
func (h jobHandler) begin(ctx context.Context, t task.Task, asked JobTask, first bool) (*Running, *core.JobExecution, error) {
	last, err := h.last(ctx, t.ID)
	switch {
	case err != nil:
		return nil, nil, err
	case last == nil:
		running, err := h.service.Start(ctx, RunRequest{
			Name: asked.Job, Params: asked.Params, Again: asked.Again, Next: asked.Next, FromStart: asked.FromStart,
			AcceptChanges: asked.AcceptChanges, Task: int64(t.ID),
		})
		return running, nil, err
	case last.Status == core.StatusCompleted || last.Status == core.StatusAbandoned || last.Status == core.StatusParked || last.Status.IsOver() && !first:
		return nil, last, nil
	}
	if elsewhere, err := h.isElsewhere(ctx, last); err != nil || elsewhere {
		return nil, last, err
	}
	running, err := h.service.Restart(ctx, RestartRequest{Execution: last.ID, AcceptChanges: asked.AcceptChanges, Task: int64(t.ID)})
	return running, last, err
}

// isElsewhere reports whether a process runs the execution.
func (h jobHandler) isElsewhere(ctx context.Context, e *core.JobExecution) (bool, error) {
	newest, err := h.service.newestAttempt(ctx, e)
	if err != nil {
		return false, err
	}
	return isRunning(newest.Refusal(true)), nil
}

// last returns the newest execution that the task ran; nil: none.
func (h jobHandler) last(ctx context.Context, id task.ID) (*core.JobExecution, error) {
	list, err := h.service.config.Repository.Executions(ctx, core.ExecutionFilter{Task: int64(id), Limit: 1})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// errTaskLost does not wrap core.ErrLostOwner: the execution is still this process's.
var errTaskLost = errors.New("the lease of the task that runs the job is over")

// follow waits for the execution. The end of ctx stops it; of a task whose lease is lost it
// is cancelled: another worker waits for it.
func (h jobHandler) follow(ctx context.Context, running *Running) (*core.JobExecution, error) {
	select {
	case <-running.Done():
	case <-ctx.Done():
		if core.IsOwnerGone(context.Cause(ctx)) {
			running.running.Cancel(errTaskLost)
		} else {
			running.Stop()
		}
		<-running.Done()
	}
	return running.running.Wait()
}

// pause waits before the next look. Where ctx ends, the execution is asked to stop, unless
// only this worker stops.
func (h jobHandler) pause(ctx context.Context, last *core.JobExecution) error {
	timer := time.NewTimer(waitPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	if last == nil || errors.Is(cause, task.ErrStopping) || core.IsOwnerGone(cause) {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), planTime)
	defer cancel()
	_, err := h.service.Stop(ctx, last.ID)
	return errors.Join(cause, err)
}

// outcome says what the end of an execution is to its task.
func (h jobHandler) outcome(ctx context.Context, e *core.JobExecution, asked JobTask) task.Outcome {
	ref, err := json.Marshal(map[string]any{"job_execution": e.ID, "status": e.Status, "exit_code": e.ExitCode})
	o := task.Success()
	switch {
	case e.Status == core.StatusCompleted:
	case ctx.Err() != nil:
		o = task.Failure(fmt.Sprintf("execution %d is %s: %v", e.ID, e.Status, context.Cause(ctx)))
	case e.Status == core.StatusFailed && asked.Retry:
		o = task.Failure(fmt.Sprintf("execution %d failed: %s", e.ID, e.Error))
	default:
		o = fatal(fmt.Sprintf("execution %d is %s: %s", e.ID, e.Status, e.Error))
	}
	if err == nil {
		o = o.WithArtifact(task.JSON(ref))
	}
	return o
}

func fatal(reason string) task.Outcome {
	o := task.Failure(reason)
	o.Fatal = true
	return o
}

// refusedTask is the outcome of a launch that was refused: only what is running, or a
// database that is away, is worth another attempt.
func refusedTask(err error) task.Outcome {
	if _, refused := errors.AsType[*Refusal](err); !refused || isRunning(err) {
		return task.Failure(err.Error())
	}
	return fatal(err.Error())
}

func isRunning(err error) bool {
	_, running := errors.AsType[*core.AlreadyRunningError](err)
	return running
}
