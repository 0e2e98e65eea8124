package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type runs struct {
	schema    *schema
	judge     *judge
	jobs      *jobs
	chooser   *chooser
	restarts  *restarts
	redrives  *redrives
	changes   *comparison
	admission *admission
	parked    *parked
	view      *viewer
	history   *history
	launcher  *job.Launcher
	actor     actor
	active    *runnings
	records   runRecords
}

type runRecords interface {
	journal.Repository
	Execution(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error)
	Executions(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecution, error)
}

// Run runs a job to its end, in the instance that [Service.Choose] returns. The
// error is for a refused launch (*Refusal), or a record that could not be
// written. The end of ctx cancels; the final status is written nevertheless
// (rules C14, L4). An execution that cannot renew its lease ends before another
// process may take over; a component that ignores its context's end is
// abandoned, a core.ComponentLate, and may run concurrently with its successor
// unless the program exits (rule L9).
func (s *runs) Run(ctx context.Context, req RunRequest) (*Execution, error) {
	running, err := s.Start(ctx, req)
	if err != nil {
		return nil, err
	}
	return running.Follow(ctx, req.Stop)
}

// Start launches a job as Run does and returns when its execution exists. It
// does not end with ctx: call Stop.
func (s *runs) Start(ctx context.Context, req RunRequest) (*Running, error) {
	if err := s.schema.Prepare(ctx); err != nil {
		return nil, err
	}
	l, err := s.chooser.choose(ctx, req)
	if err != nil {
		return nil, err
	}
	return s.launch(ctx, l)
}

// Restart makes another attempt with the execution's parameters, changed by
// req.Params. It must be its instance's newest, and FAILED or STOPPED
// (COMPLETED with From and IfComplete); a running one is taken over if its
// owner is lost. A *RequestError means that fields exclude each other.
func (s *runs) Restart(ctx context.Context, req RestartRequest) (*Running, error) {
	if err := s.schema.Prepare(ctx); err != nil {
		return nil, err
	}
	l, err := s.restarts.restartOf(ctx, req)
	if err != nil {
		return nil, err
	}
	return s.launch(ctx, l)
}

// Redrive runs the remaining skipped items through their step's processors and
// writers, in an execution of its own, which another Redrive continues.
func (s *runs) Redrive(ctx context.Context, req RedriveRequest) (*Running, error) {
	for tries := 1; ; tries++ {
		l, err := s.redrives.redriveOf(ctx, req)
		if err != nil {
			return nil, err
		}
		running, refused := s.launch(ctx, l)
		if refused == nil || tries == maxReplanned {
			return running, refused
		}
		refused = s.redrives.overtaken(ctx, req, l, refused)
		if stale, err := s.redrives.isStale(ctx, req, l, refused); err != nil || !stale {
			return nil, errors.Join(refused, err)
		}
	}
}

// How often a redrive is planned while others begin.
const maxReplanned = 10

func (s *runs) launch(ctx context.Context, l *launch) (*Running, error) {
	if s.launcher == nil {
		return nil, fmt.Errorf("job %s: this service has no launcher and cannot start jobs", l.job.Name)
	}
	if err := s.admission.checkFormer(ctx, l); err != nil {
		return nil, err
	}
	l.options.OnLast = s.onLast(l)
	if l.file != nil {
		l.job.CheckRestart = s.checkRestart(l)
	}
	running, err := s.start(ctx, l)
	if err != nil {
		return nil, s.admission.refused(ctx, err, l)
	}
	return s.keep(running, l.job, l.hooks), nil
}

// First it ends an attempt of the instance that is parked with a requested
// stop, if no worker has a partition of it.
func (s *runs) start(ctx context.Context, l *launch) (*job.Running, error) {
	l.options.Actor, l.options.Reason = s.actor.of(ctx), ports.ReasonOf(ctx)
	launcher := s.launcher.With(l.options)
	started, err := launcher.Start(ctx, l.job, l.params)
	running, refused := errors.AsType[*ports.AlreadyRunningError](err)
	if !refused || !running.Parked {
		return started, err
	}
	e, failure := s.records.Execution(ctx, running.ExecutionID)
	if failure == nil {
		e, failure = s.parked.endParked(ctx, e)
	}
	switch {
	case failure != nil:
		return nil, errors.Join(err, failure)
	case !e.Status.IsOver():
		return nil, err
	}
	return launcher.Start(ctx, l.job, l.params)
}

func (s *runs) keep(r *job.Running, j *model.Job, hooks Hooks) *Running {
	s.active.add(r)
	return &Running{view: s.view, records: s.records, running: r, job: j, hooks: hooks}
}

// Close stops the executions that it started here, and waits until they have
// ended or ctx has. A parked execution continues.
func (s *runs) Close(ctx context.Context) error { return s.active.stop(ctx) }

// onLast notices, once, another job file (rule L1a), and changes that do not
// matter or are accepted (rule F4).
func (s *runs) onLast(l *launch) func(ctx context.Context, last *core.JobExecution) error {
	called := false
	return func(ctx context.Context, last *core.JobExecution) error {
		if called { // another try of the launch, after a parked execution ended
			return nil
		}
		called, l.last = true, last
		if err := s.noticeOtherFile(ctx, l, last); err != nil || last == nil || l.file == nil || last.Status == core.StatusCompleted {
			return err
		}
		var changes []jobfile.Change
		switch {
		case l.options.FromStart:
		case l.options.AcceptChanges:
			var err error
			if changes, err = s.changes.changes(ctx, last, l); err != nil && !errors.As(err, new(*jobfile.ChangedError)) {
				return err
			}
		default:
			return nil
		}
		l.noticeChanges(last, changes)
		return nil
	}
}

func (s *runs) checkRestart(l *launch) func(ctx context.Context, last *core.JobExecution, h ports.History, params core.Parameters) ([]string, error) {
	return func(ctx context.Context, last *core.JobExecution, h ports.History, params core.Parameters) (taken []string, err error) {
		changes, err := l.file.Changes(ctx, jobfile.Restart{Last: last, Params: params, History: h, Registry: s.jobs.registry})
		if err != nil {
			return nil, err
		}
		l.noticeChanges(last, changes)
		for _, change := range changes {
			if change.NewDefinition {
				taken = append(taken, change.Step)
			}
		}
		return taken, nil
	}
}

func (s *runs) noticeOtherFile(ctx context.Context, l *launch, last *core.JobExecution) error {
	now := l.job.Definition.Path
	if now == "" {
		return nil
	}
	if last == nil {
		page, err := s.records.Executions(ctx, ports.ExecutionFilter{JobName: l.job.Name, Limit: 1})
		if err != nil {
			return fmt.Errorf("find the newest execution: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		last = &page[0]
	}
	was := last.Definition.Path
	if was == "" || was == now || isSameFile(was, now) && isSameFile(filepath.Dir(was), filepath.Dir(now)) {
		return nil // else relative paths begin at another folder
	}
	_, err := os.Stat(was)
	l.hooks.notice(Notice{Kind: NoticeOtherFile, Execution: last.ID, File: now, Was: was, WasGone: errors.Is(err, fs.ErrNotExist)})
	return nil
}

func isSameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
