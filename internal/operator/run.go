package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type launch struct {
	definition
	job     *model.Job
	params  core.Parameters
	options job.Options
	hooks   Hooks
	// from is where the attempt begins again; nil means that it resumes incomplete work.
	from *journal.From
	// follows is the execution with the parameters that a run uses if none are given, or nil.
	follows *core.JobExecution
	// named is the execution that the caller named; nil for a run.
	named *core.JobExecution
}

// Run runs a job to its end, in the instance that [Service.Choose] returns. The execution describes
// a job that failed or stopped; the error is for a refused launch (a *Refusal with the cause in its
// chain), or a record that could not be written.
//
// The end of ctx cancels the run; its final status is written nevertheless (rules C14, L4).
// Hooks.Stop requests a stop: the current chunk is finished.
//
// An execution that cannot renew its lease ends before another process may take it over. A
// component that ignores the end of its context is then abandoned, and reported as a
// core.ComponentLate: it may run concurrently with its successor, unless the program ends itself
// (rule L9). The surfin command does.
func (s *Service) Run(ctx context.Context, req RunRequest) (*Execution, error) {
	running, err := s.Start(ctx, req)
	if err != nil {
		return nil, err
	}
	return running.Follow(ctx, req.Stop)
}

// Start launches a job as Run does and returns when its execution exists. The execution does not
// end with ctx: call Stop on the result.
func (s *Service) Start(ctx context.Context, req RunRequest) (*Running, error) {
	if err := s.Prepare(ctx); err != nil {
		return nil, err
	}
	l, err := s.choose(ctx, req)
	if err != nil {
		return nil, err
	}
	return s.launch(ctx, l)
}

func (s *Service) launch(ctx context.Context, l *launch) (*Running, error) {
	if s.config.Launcher == nil {
		return nil, fmt.Errorf("job %s: this service has no launcher, it cannot start jobs", l.job.Name)
	}
	if err := s.checkFormer(ctx, l); err != nil {
		return nil, err
	}
	if err := s.compareWithHistory(ctx, l); err != nil {
		return nil, err
	}
	running, err := s.start(ctx, l)
	if err != nil {
		return nil, s.refused(ctx, err, l)
	}
	return s.keep(running, l.job, l.hooks), nil
}

// compareWithHistory compares the job file with the history: its location (rule L1a), and the
// definition of the instance's last attempt, if that will be resumed (rules F4, F4a).
func (s *Service) compareWithHistory(ctx context.Context, l *launch) error {
	last, err := s.lastExecution(ctx, l.job.Name, l.params.Key())
	if err != nil {
		return err
	}
	if err := s.noticeOtherFile(ctx, l, last); err != nil || last == nil || l.file == nil {
		return err
	}
	return s.checkChanges(ctx, l, last)
}

// checkChanges judges the changes of the job file since the last attempt: changes of committed work
// refuse the launch, unless they are accepted; others are a notice. A race is harmless: the
// launcher compares again.
func (s *Service) checkChanges(ctx context.Context, l *launch, last *core.JobExecution) error {
	var err error
	sameFile := last.Definition.Hash == l.job.Definition.Hash
	if last.Status == core.StatusCompleted || sameFile && !last.FormerTimes {
		return nil
	}
	notice := Notice{Kind: NoticeChanged, Execution: last.ID, File: l.path, FromStart: l.options.FromStart,
		Actions: compareActions(last.ID, last.Definition, l.job.Definition, l.path)}
	if !notice.FromStart {
		notice.Changes, err = s.changes(ctx, last, l)
		if err != nil && (!l.options.AcceptChanges || !errors.As(err, new(*jobfile.ChangedError))) {
			return err
		}
	}
	if !sameFile {
		l.hooks.notice(notice)
	}
	return nil
}

// changes returns the differences of the job file since the last attempt of its instance. It
// refuses changes of committed work.
func (s *Service) changes(ctx context.Context, last *core.JobExecution, l *launch) ([]jobfile.Change, error) {
	changes, err := l.file.Changes(ctx, jobfile.Restart{
		Last: last, Params: l.params, History: s.restartHistory(l, last), Registry: s.config.Registry,
	})
	var changed *jobfile.ChangedError
	if !errors.As(err, &changed) {
		return changes, err
	}
	r := &Refusal{Reason: ReasonChanged, Last: last.ID, Details: changed.Refused(), Diff: changed.Diff, Err: changed}
	if last.Definition.Hash != l.job.Definition.Hash {
		r.Actions = compareActions(changed.Execution, last.Definition, l.job.Definition, l.path)
	}
	if last.RedriveOf == 0 {
		r.Actions = append(r.Actions,
			Action{Kind: ActRestart, Execution: last.ID, File: l.path, AcceptChanges: true},
			Action{Kind: ActRestart, Execution: last.ID, File: l.path, FromStart: true})
	}
	return changes, r
}

// restartHistory returns the part of the history that the attempt keeps, for the comparison of
// definitions.
func (s *Service) restartHistory(l *launch, last *core.JobExecution) ports.History {
	h := ports.History{Records: s.config.Repository, Database: s.config.Repository.Database()}
	if l.from != nil {
		h.Records = l.from.Records(h.Records, last.InstanceID)
	}
	if s.config.Checkpoints != nil {
		h.Checkpoints = s.config.Checkpoints
	}
	return h
}
