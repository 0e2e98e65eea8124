package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Running is an execution that runs in this process, concurrently with the caller.
type Running struct {
	service *Service
	running *job.Running
	job     *model.Job
	hooks   Hooks
}

// Execution returns the execution as it was launched.
func (r *Running) Execution() *Execution {
	e := r.running.Execution()
	return r.service.execution(&e)
}

// Stop requests a stop: the current chunk is finished. It may be called repeatedly.
func (r *Running) Stop() { r.running.Stop() }

// Leave is Stop, except for a parked execution: that continues, and Wait returns it as it is.
func (r *Running) Leave() { r.running.Leave() }

// Done is closed when the execution has ended, or was left.
func (r *Running) Done() <-chan struct{} { return r.running.Done() }

// Wait returns the ended execution. The error is for a record that could not be written
// (core.ErrLostOwner in its chain if another process took over).
func (r *Running) Wait() (*Execution, error) {
	e, err := r.running.Wait()
	if errors.Is(err, job.ErrLeft) {
		err = nil
	}
	if e == nil {
		return nil, err
	}
	view := r.service.execution(e)
	if err == nil && (e.Status == core.StatusFailed || e.Status == core.StatusStopped) {
		r.service.offerWithinLimit(view, e, r.job)
	}
	return view, err
}

// planTime bounds the queries of the history after the end of an execution.
const planTime = 10 * time.Second

// offerWithinLimit replaces the restart action if one of its steps would exceed its start_limit. If
// that is unknown it offers nothing: Explain says why.
func (s *Service) offerWithinLimit(view *Execution, e *core.JobExecution, j *model.Job) {
	if e.RedriveOf != 0 || !hasStartLimit(j.Flow) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), planTime)
	defer cancel()
	switch plan, err := s.restartPlan(ctx, e, j); {
	case err != nil:
		view.Actions = nil
	case plan.Limit != nil:
		view.Actions = anew(e)
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

// waitingLook is the time between two checks whether an execution waits for a missing worker.
const waitingLook = time.Second

// Follow waits as Wait does, and passes on requests of the caller: closing stop requests a stop,
// the end of ctx cancels at once (rule L4). stop may be nil. If the execution is parked and no live
// worker continues it, Hooks.OnNotice is called once.
func (r *Running) Follow(ctx context.Context, stop <-chan struct{}) (*Execution, error) {
	done := ctx.Done()
	var look <-chan time.Time
	if r.hooks.OnNotice != nil {
		ticker := time.NewTicker(waitingLook)
		defer ticker.Stop()
		look = ticker.C
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
		case <-look:
			if waiting := r.service.lacksWorker(ctx, r.running.Execution().ID); waiting != nil {
				r.hooks.notice(Notice{Kind: NoticeNoWorker, Execution: r.running.Execution().ID, Waiting: waiting})
				look = nil
			} else if placed := r.service.lacksFitting(ctx, r.running.Execution().ID); len(placed) > 0 {
				r.hooks.notice(Notice{Kind: NoticePlaced, Execution: r.running.Execution().ID, Placed: placed})
				look = nil
			}
		}
	}
}

// lacksWorker returns the open work of a parked execution if no live worker continues it. It
// returns nil otherwise, or if the database cannot be queried now.
func (s *Service) lacksWorker(ctx context.Context, id core.JobExecutionID) *Waiting {
	judged, err := s.judgedExecution(ctx, id)
	if err != nil || !isParked(&judged.Execution) {
		return nil
	}
	waiting, err := s.waiting(ctx, []ports.JudgedExecution{*judged})
	if err != nil || !waiting[id].NoWorker() {
		return nil
	}
	return waiting[id]
}

// lacksFitting returns the work of an execution that waits because no live worker fits. It returns
// nil if there is none, or if the database cannot be queried now.
func (s *Service) lacksFitting(ctx context.Context, id core.JobExecutionID) []PlacedWork {
	judged, err := s.judgedExecution(ctx, id)
	if err != nil {
		return nil
	}
	placed, err := s.placed(ctx, []ports.JudgedExecution{*judged})
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(placed[id], func(p PlacedWork) bool { return !p.Unfit })
}

func (s *Service) keep(r *job.Running, j *model.Job, hooks Hooks) *Running {
	s.runnings.add(r)
	return &Running{service: s, running: r, job: j, hooks: hooks}
}

// Close stops the executions that the service started in this process, and waits until they have
// ended, as long as ctx allows. A parked execution continues: no process holds it.
func (s *Service) Close(ctx context.Context) error { return s.runnings.stop(ctx) }

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

// ask stops an execution of this process without waiting for it to poll the database, and reports
// whether it is here.
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
