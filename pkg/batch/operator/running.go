package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

// Running is an execution that runs in this process, beside the caller.
type Running struct {
	service *Service
	running *job.Running
	job     *core.Job
	hooks   Hooks
}

// Execution returns the execution as it was launched.
func (r *Running) Execution() *Execution {
	e := r.running.Execution()
	return r.service.execution(&e)
}

// Stop asks for a stop: the chunk in hand is finished. It may be called often.
func (r *Running) Stop() { r.running.Stop() }

// Leave is Stop, unless the execution is parked: then that continues, and Wait returns it as it is.
func (r *Running) Leave() { r.running.Leave() }

// Done is closed when the execution is over, or left.
func (r *Running) Done() <-chan struct{} { return r.running.Done() }

// Wait returns how it ended. The error is about a record that could not be written
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

// planTime bounds what is asked of the history after the end of an execution.
const planTime = 10 * time.Second

// offerWithinLimit replaces the restart where a step of it would exceed its start_limit.
// Where that is not known nothing is offered: Explain says why.
func (s *Service) offerWithinLimit(view *Execution, e *core.JobExecution, j *core.Job) {
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

func hasStartLimit(flow core.Flow) bool {
	return slices.ContainsFunc(flow.Elements, func(e core.Element) bool {
		switch e := e.(type) {
		case *core.StepElement:
			return e.StartLimit != nil
		case *core.FlowElement:
			return e.StartLimit != nil || hasStartLimit(e.Flow)
		case *core.SplitElement, *core.AtomicElement, *core.DecisionElement:
		}
		return slices.ContainsFunc(core.Flows(e), hasStartLimit)
	})
}

// waitingLook is the time between two looks at whether an execution waits for a worker that is
// not there.
const waitingLook = time.Second

// Follow waits as Wait does, and passes on what the caller is asked for: closing stop
// asks for a stop, the end of ctx cancels at once (rule L4). stop may be nil. Where the execution
// is parked and no worker lives that continues it, Hooks.OnNotice is told once.
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

// lacksWorker returns what a parked execution waits for where no worker lives that continues it;
// nil: it is not so, or the database cannot say it now.
func (s *Service) lacksWorker(ctx context.Context, id core.JobExecutionID) *Waiting {
	judged, err := s.judgedExecution(ctx, id)
	if err != nil || !isParked(&judged.Execution) {
		return nil
	}
	waiting, err := s.waiting(ctx, []core.JudgedExecution{*judged})
	if err != nil || !waiting[id].NoWorker() {
		return nil
	}
	return waiting[id]
}

// lacksFitting returns the work of an execution that waits since no live worker fits; nil: it is not so, or the database
// cannot say it now.
func (s *Service) lacksFitting(ctx context.Context, id core.JobExecutionID) []PlacedWork {
	judged, err := s.judgedExecution(ctx, id)
	if err != nil {
		return nil
	}
	placed, err := s.placed(ctx, []core.JudgedExecution{*judged})
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(placed[id], func(p PlacedWork) bool { return !p.Unfit })
}

// keep remembers what runs in this process, until it is over.
func (s *Service) keep(r *job.Running, j *core.Job, hooks Hooks) *Running {
	s.runnings.add(r)
	return &Running{service: s, running: r, job: j, hooks: hooks}
}

// Close stops what the service started and this process runs, and waits until it is over, as long as ctx
// lets it. A parked execution continues: no process holds it.
func (s *Service) Close(ctx context.Context) error { return s.runnings.stop(ctx) }

// runnings are the executions of this process that are not over.
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

// has reports whether this process runs the execution.
func (rs *runnings) has(id core.JobExecutionID) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	_, here := rs.byID[id]
	return here
}

// ask stops an execution of this process without waiting until it looks into the
// database, and reports whether it is here.
func (rs *runnings) ask(id core.JobExecutionID) bool {
	rs.mu.Lock()
	r, here := rs.byID[id]
	rs.mu.Unlock()
	if here {
		r.Stop()
	}
	return here
}

// stop stops all that this process holds, and waits until they are over.
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
