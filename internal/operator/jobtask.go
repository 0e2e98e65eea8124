package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/workslot"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// SubmittedTasks reads the runs of a schedule, and the attempts and the budget of a run.
type SubmittedTasks interface {
	Tasks(ctx context.Context, f task.Filter) ([]task.Task, error)
	Attempts(ctx context.Context, id task.ID) ([]taskports.Attempt, error)
	Group(ctx context.Context, id task.GroupID) (*task.Group, error)
}

// NewJobHandler returns the handler of tasks of type job. A task has one
// execution and its restarts; while it is parked, the handler is idle. tasks
// finds earlier runs of a schedule, or is nil.
func NewJobHandler(s *Service, tasks SubmittedTasks) task.Handler {
	return jobHandler{s.runs, s.acts, tasks}
}

type jobHandler struct {
	runs  *runs
	acts  *acts
	tasks SubmittedTasks
}

// Composite marks that the job has its own time limits.
func (jobHandler) Composite() {}

func (h jobHandler) Execute(ctx context.Context, t task.Task) (task.Outcome, error) {
	var asked JobTask
	decoder := json.NewDecoder(bytes.NewReader(t.Spec.Payload))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil || !asked.isComplete() {
		return fatal(fmt.Sprintf("the payload of a task of type job must have job, and may have params, again, next, from_start, accept_changes, retry and backfill; or act and execution, and may have epoch and reason: %v", err)), nil
	}
	if c := t.Spec.Client; c != nil {
		ctx = WithClient(ctx, c.Paths)
	}
	if asked.Act == ports.VerbStop || asked.Act == ports.VerbAbandon {
		return h.act(ctx, t, asked), nil
	}
	if err := h.inTurn(ctx, t, asked); err != nil {
		return task.Outcome{}, err
	}
	first := true
	for {
		running, last, err := h.begin(ctx, t, asked, first)
		if reasonOf(err) == refusal.Exclusive { // it waits until the other one has ended
			task.Idle(ctx)
			if err := h.pause(ctx, t, nil); err != nil {
				return task.Outcome{}, err
			}
			continue
		}
		first = false
		switch {
		case err != nil && (last == nil || !isRunning(err)):
			return refusedTask(err, asked), nil
		case err == nil && running != nil:
			last, err = h.follow(ctx, running)
			if err != nil {
				return task.Outcome{}, err
			}
		}
		if last != nil && last.Status.IsOver() {
			lagging, err := h.lags(ctx, t, last, asked)
			if err != nil {
				return task.Outcome{}, err
			}
			if lagging {
				continue
			}
			return h.outcome(ctx, last, asked), nil
		}
		task.Idle(ctx) // parked, or another process has it
		if err := h.pause(ctx, t, last); err != nil {
			return task.Outcome{}, err
		}
	}
}

func (h jobHandler) inTurn(ctx context.Context, t task.Task, asked JobTask) error {
	if !asked.InTurn || t.Spec.JobDefinition == 0 || h.tasks == nil {
		return nil
	}
	for {
		var earlier []task.Task
		err := model.Patiently(ctx, func(ctx context.Context) (err error) {
			earlier, err = h.tasks.Tasks(ctx, task.Filter{JobDefinition: t.Spec.JobDefinition, Unfinished: true, Before: t.ID, Limit: 1})
			return err
		})
		if err != nil || len(earlier) == 0 {
			return err
		}
		task.Idle(ctx)
		if err := h.pause(ctx, t, nil); err != nil {
			return err
		}
	}
}

func (h jobHandler) begin(ctx context.Context, t task.Task, asked JobTask, first bool) (*Running, *core.JobExecution, error) {
	ctx = ports.WithActor(ctx, fmt.Sprintf("task %d", t.ID)) // the task's submission records the requester
	last, err := h.last(ctx, t.ID)
	lagging := false
	if err == nil {
		lagging, err = h.lags(ctx, t, last, asked)
	}
	switch {
	case err != nil:
		return nil, nil, err
	case last == nil || lagging:
		return h.start(ctx, t, asked)
	case last.Status == core.StatusCompleted || last.Status == core.StatusAbandoned || last.Status == core.StatusParked || last.Status.IsOver() && !first:
		return nil, last, nil
	}
	if is, err := h.isElsewhere(ctx, last); err != nil || is {
		return nil, last, err
	}
	if unheard, err := h.failedUnheard(ctx, t.ID, last, asked); err != nil || unheard {
		return nil, last, err
	}
	if last.RedriveOf != 0 {
		running, err := h.runs.Redrive(ctx, RedriveRequest{Execution: last.RedriveOf, Step: redrivenStep(last.Params), Task: int64(t.ID)})
		return running, last, err
	}
	running, err := h.runs.Restart(ctx, RestartRequest{Execution: last.ID, AcceptChanges: asked.AcceptChanges, Task: int64(t.ID), On: t.Spec.On})
	return running, last, err
}

// start begins the first execution of the task. A worker that lost the task may have begun it just
// now: then the act is refused, and the execution is followed.
func (h jobHandler) start(ctx context.Context, t task.Task, asked JobTask) (running *Running, last *core.JobExecution, err error) {
	if asked.isAct() {
		ctx = asked.actor(ctx, t)
	}
	req := RunRequest{
		Name: asked.Job, Params: asked.Params, Again: asked.Again, Next: asked.Next, FromStart: asked.FromStart,
		AcceptChanges: asked.AcceptChanges, Task: int64(t.ID), On: t.Spec.On,
	}
	switch {
	case asked.Backfill != "":
		running, err = h.runs.startValue(ctx, req, asked.Backfill)
	case asked.Act == "":
		running, err = h.runs.Start(ctx, req)
		return running, nil, err
	case asked.Act == ports.VerbRedrive:
		running, err = h.runs.Redrive(ctx, RedriveRequest{Execution: asked.Execution, Epoch: asked.Epoch, Task: int64(t.ID)})
	default:
		running, err = h.runs.Restart(ctx, RestartRequest{Execution: asked.Execution, Epoch: asked.Epoch, AcceptChanges: asked.AcceptChanges, Task: int64(t.ID), On: t.Spec.On})
	}
	if _, refused := errors.AsType[*Refusal](err); refused {
		begun, failure := h.last(ctx, t.ID)
		if failure != nil || begun != nil {
			return nil, begun, failure
		}
	}
	return running, nil, err
}

// actor names the person of an act, and the group of its task as the reason.
func (asked JobTask) actor(ctx context.Context, t task.Task) context.Context {
	by := cmp.Or(asked.Actor, fmt.Sprintf("task %d", t.ID))
	return ports.WithReason(ports.WithActor(ctx, by), strings.TrimSuffix(fmt.Sprintf("group %d: %s", t.GroupID, asked.Reason), ": "))
}

// act stops or abandons. An attempt after one that died finds it done.
func (h jobHandler) act(ctx context.Context, t task.Task, asked JobTask) task.Outcome {
	ctx = asked.actor(ctx, t)
	var e *Execution
	var err error
	if asked.Act == ports.VerbStop {
		e, _, err = h.acts.StopAnswer(ctx, asked.Execution, asked.Epoch)
	} else {
		e, _, err = h.acts.AbandonAnswer(ctx, asked.Execution, asked.Epoch)
	}
	if r, is := errors.AsType[*Refusal](err); is && r.Reason == refusal.Over {
		if was, failure := h.acts.records.Execution(ctx, asked.Execution); failure == nil && was.StopRequested {
			err = nil
		}
	}
	if err != nil && !errors.As(err, new(*NotEndedError)) {
		return refusedTask(err, asked)
	}
	o := task.Success()
	if ref, err := json.Marshal(endOfExecution{e.ID, e.Status, e.ExitCode}); err == nil {
		o = o.WithArtifact(task.JSON(ref))
	}
	return o
}

const caughtUp = 50

// lags: each run of a schedule is for one instance, and one that resumed a
// failed instance started none. Manual ones count.
func (h jobHandler) lags(ctx context.Context, t task.Task, last *core.JobExecution, asked JobTask) (bool, error) {
	if !asked.CatchUp || last == nil || last.Status != core.StatusCompleted || t.Spec.JobDefinition == 0 || h.tasks == nil || ctx.Err() != nil {
		return false, nil
	}
	runs, err := h.tasks.Tasks(ctx, task.Filter{JobDefinition: t.Spec.JobDefinition, Limit: caughtUp})
	if err != nil {
		return false, err
	}
	unseen := make(map[int64]bool, len(runs))
	for _, run := range runs {
		unseen[int64(run.ID)] = true
	}
	made, err := h.runs.chooser.records.Instances(ctx, ports.InstanceFilter{JobName: asked.Job, OnlyBase: true, NoBackfills: true, Limit: caughtUp})
	if err != nil {
		return false, err
	}
	uncounted := make(map[core.JobInstanceID]bool, len(made))
	for _, instance := range made {
		uncounted[instance.ID] = true
	}
	list, err := h.runs.records.Executions(ctx, ports.ExecutionFilter{JobName: asked.Job, Limit: 2 * caughtUp})
	if err != nil {
		return false, err
	}
	owed := 0
	for _, e := range slices.Backward(list) { // oldest first
		if unseen[e.Task] {
			unseen[e.Task] = false
			owed++
		}
		if uncounted[e.InstanceID] {
			uncounted[e.InstanceID] = false
			if e.Attempt == 1 {
				owed = max(owed-1, 0)
			}
		}
	}
	return owed > 0, nil
}

// failedUnheard reports whether the job itself failed and no attempt of the
// task has reported it: the worker stopped in between.
func (h jobHandler) failedUnheard(ctx context.Context, id task.ID, e *core.JobExecution, asked JobTask) (bool, error) {
	if asked.Retry || h.tasks == nil || e.Status != core.StatusFailed || e.Error == lostOwnerText || strings.Contains(e.Error, errTaskLost.Error()) {
		return false, nil
	}
	var attempts []taskports.Attempt
	err := model.Patiently(ctx, func(ctx context.Context) (err error) {
		attempts, err = h.tasks.Attempts(ctx, id)
		return err
	})
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(attempts, func(a taskports.Attempt) bool { return reported(a.Outcome) == e.ID }), nil
}

type endOfExecution struct {
	JobExecution core.JobExecutionID `json:"job_execution"`
	Status       core.Status         `json:"status"`
	ExitCode     string              `json:"exit_code"`
}

func reported(o *task.Outcome) core.JobExecutionID {
	if o == nil {
		return 0
	}
	for _, a := range o.Artifacts {
		var end endOfExecution
		if a.Kind == task.KindJSON && json.Unmarshal(a.JSON, &end) == nil && end.JobExecution != 0 {
			return end.JobExecution
		}
	}
	return 0
}

func (h jobHandler) isElsewhere(ctx context.Context, e *core.JobExecution) (bool, error) {
	newest, err := h.runs.judge.newestAttempt(ctx, e)
	if err != nil {
		return false, err
	}
	return isRunning(newest.Refusal(true)), nil
}

func (h jobHandler) last(ctx context.Context, id task.ID) (*core.JobExecution, error) {
	list, err := h.runs.records.Executions(ctx, ports.ExecutionFilter{Task: int64(id), Limit: 1})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// errTaskLost does not wrap core.ErrLostOwner: the execution still belongs to
// this process.
var errTaskLost = errors.New("the lease of the task that runs the job has expired")

// The end of ctx stops it. If the lease of the task is lost, the execution is
// canceled: another worker waits for it.
func (h jobHandler) follow(ctx context.Context, running *Running) (*core.JobExecution, error) {
	select {
	case <-running.Done():
	case <-ctx.Done():
		if model.IsOwnerGone(context.Cause(ctx)) {
			running.running.Cancel(errTaskLost)
		} else {
			running.Stop()
		}
		<-running.Done()
	}
	return running.running.Wait()
}

// If ctx ends, it requests a stop of the execution, unless only this worker
// stops. A stopping worker gives the waiting task back at once (rule W5):
// task.ErrStopping.
func (h jobHandler) pause(ctx context.Context, t task.Task, last *core.JobExecution) error {
	timer := time.NewTimer(waitPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-workslot.Stopping(ctx):
		if h.hasAttempts(ctx, t) {
			return task.ErrStopping
		}
	case <-ctx.Done():
	}
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	if last == nil || errors.Is(cause, task.ErrStopping) || model.IsOwnerGone(cause) {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), planTime)
	defer cancel()
	_, err := h.acts.Stop(ctx, last.ID)
	return errors.Join(cause, err)
}

func (h jobHandler) hasAttempts(ctx context.Context, t task.Task) bool {
	if h.tasks == nil {
		return false
	}
	g, err := h.tasks.Group(ctx, t.GroupID)
	return err == nil && t.Attempts < g.Budget.Filled().MaxAttempts // an error: the task has its drain time
}

func (h jobHandler) outcome(ctx context.Context, e *core.JobExecution, asked JobTask) task.Outcome {
	ref, err := json.Marshal(endOfExecution{e.ID, e.Status, e.ExitCode})
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

// Only a running instance, or an unreachable database, is worth another
// attempt. A back-fill leaves complete instances out.
func refusedTask(err error, asked JobTask) task.Outcome {
	if asked.Backfill != "" && reasonOf(err) == refusal.Complete {
		return task.Success().WithReason(err.Error())
	}
	if _, refused := errors.AsType[*Refusal](err); !refused || isRunning(err) {
		return task.Failure(err.Error())
	}
	return fatal(err.Error())
}

func isRunning(err error) bool {
	_, running := errors.AsType[*ports.AlreadyRunningError](err)
	return running
}
