package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Running is an execution that runs in this process.
type Running struct {
	view    *viewer
	records journal.Repository
	running *job.Running
	job     *model.Job
	hooks   Hooks
}

// Execution returns it as launched.
func (r *Running) Execution() *Execution {
	e := r.running.Execution()
	return r.view.execution(&e)
}

// Stop requests a stop. It may be called repeatedly.
func (r *Running) Stop() { r.running.Stop() }

// Leave is Stop, but a parked execution continues.
func (r *Running) Leave() { r.running.Leave() }

// Done is closed when it has ended or was left.
func (r *Running) Done() <-chan struct{} { return r.running.Done() }

// Wait returns the ended execution. The error is for a record that could not be
// written (core.ErrLostOwner if taken over).
func (r *Running) Wait() (*Execution, error) {
	e, err := r.running.Wait()
	if errors.Is(err, job.ErrLeft) {
		err = nil
	}
	if e == nil {
		return nil, err
	}
	view := r.view.execution(e)
	if err == nil && (e.Status == core.StatusFailed || e.Status == core.StatusStopped) {
		r.offerWithinLimit(view, e, r.job)
	}
	return view, err
}

const planTime = 10 * time.Second

// If that is unknown it offers nothing: Explain says why.
func (r *Running) offerWithinLimit(view *Execution, e *core.JobExecution, j *model.Job) {
	if e.RedriveOf != 0 || !hasStartLimit(j.Flow) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), planTime)
	defer cancel()
	switch plan, err := restartPlan(ctx, r.records, e, j); {
	case err != nil:
		view.Actions = nil
	case plan.Limit != nil:
		view.Actions = newInstance(e)
	}
}

func hasStartLimit(flow model.Flow) bool {
	return slices.ContainsFunc(flow.Elements, func(e model.Element) bool {
		switch e := e.(type) {
		case *model.StepElement:
			return e.StartLimit != nil
		case *model.FlowElement:
			return e.StartLimit != nil || hasStartLimit(e.Flow)
		case *model.SplitElement, *model.AtomicElement, *model.DecisionElement:
		}
		return slices.ContainsFunc(model.Flows(e), hasStartLimit)
	})
}

const workerPoll = time.Second

// Follow waits as Wait does: closing stop requests a stop, the end of ctx
// cancels (rule L4). stop may be nil. Hooks.OnNotice is called once if no live
// worker continues a parked execution.
func (r *Running) Follow(ctx context.Context, stop <-chan struct{}) (*Execution, error) {
	done := ctx.Done()
	var poll <-chan time.Time
	if r.hooks.OnNotice != nil {
		ticker := time.NewTicker(workerPoll)
		defer ticker.Stop()
		poll = ticker.C
	}
	for {
		select {
		case <-r.running.Done():
			return r.Wait()
		case <-stop:
			r.running.Stop()
			stop = nil
		case <-done:
			r.running.Cancel(context.Cause(ctx))
			done = nil
		case <-poll:
			if n := r.lacksWorker(ctx); n != nil {
				r.hooks.notice(*n)
				poll = nil
			}
		}
	}
}

func (r *Running) lacksWorker(ctx context.Context) *Notice {
	id := r.running.Execution().ID
	judged, err := r.view.judge.judgedExecution(ctx, id)
	if err != nil {
		return nil
	}
	views, err := r.view.views(ctx, []ports.JudgedExecution{*judged})
	if err != nil {
		return nil
	}
	if views[0].Waiting.NoWorker() {
		return &Notice{Kind: NoticeNoWorker, Execution: id, Waiting: views[0].Waiting}
	}
	unfit := slices.DeleteFunc(views[0].Placed, func(p PlacedWork) bool { return !p.Unfit })
	if len(unfit) == 0 {
		return nil
	}
	return &Notice{Kind: NoticePlaced, Execution: id, Placed: unfit}
}

type runnings struct {
	mu   sync.Mutex
	byID map[core.JobExecutionID]*job.Running
}

func (rs *runnings) add(r *job.Running) {
	id := r.Execution().ID
	rs.mu.Lock()
	if rs.byID == nil {
		rs.byID = map[core.JobExecutionID]*job.Running{}
	}
	rs.byID[id] = r
	rs.mu.Unlock()
	go func() {
		<-r.Done()
		rs.mu.Lock()
		delete(rs.byID, id)
		rs.mu.Unlock()
	}()
}

func (rs *runnings) has(id core.JobExecutionID) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	_, here := rs.byID[id]
	return here
}

// ask stops it without waiting for it to poll the database.
func (rs *runnings) ask(id core.JobExecutionID) bool {
	rs.mu.Lock()
	r, here := rs.byID[id]
	rs.mu.Unlock()
	if here {
		r.Stop()
	}
	return here
}

func (rs *runnings) stop(ctx context.Context) error {
	rs.mu.Lock()
	var all []*job.Running
	for _, r := range rs.byID {
		all = append(all, r)
	}
	rs.mu.Unlock()
	for _, r := range all {
		r.Leave()
	}
	var errs []error
	for _, r := range all {
		select {
		case <-r.Done():
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("execution %d still runs: %w", r.Execution().ID, context.Cause(ctx)))
		}
	}
	return errors.Join(errs...)
}
