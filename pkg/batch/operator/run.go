package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

// launch is a job with what it is to be launched with.
type launch struct {
	definition
	job     *core.Job
	params  core.Parameters
	options job.Options
	hooks   Hooks
	// named is the execution that the caller named; nil at a run.
	named *core.JobExecution
}

// Run runs a job to its end. Which instance it runs is what [Service.Choose] answers.
// A job that failed or stopped is described by the execution; the error is about a
// launch that was refused (a *Refusal with the cause in its chain), or a record that
// could not be written.
//
// The end of ctx cancels the run; its final status is written all the same (rules C14,
// L4). Hooks.Stop asks for a stop: the chunk in hand is finished.
func (s *Service) Run(ctx context.Context, req RunRequest) (*Execution, error) {
	running, err := s.Start(ctx, req)
	if err != nil {
		return nil, err
	}
	return running.Follow(ctx, req.Stop)
}

// Start launches a job as Run does and returns when its execution exists. The
// execution does not end with ctx: ask what is returned to stop.
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

// launch starts what was chosen.
func (s *Service) launch(ctx context.Context, l *launch) (*Running, error) {
	if s.config.Launcher == nil {
		return nil, fmt.Errorf("job %s: this service has no launcher, it cannot start jobs", l.job.Name)
	}
	if err := s.checkChanges(ctx, l); err != nil {
		return nil, err
	}
	running, err := s.start(ctx, l)
	if err != nil {
		return nil, s.refused(ctx, err, l)
	}
	return s.keep(running, l.job), nil
}

// checkChanges compares the job file with what the last attempt of the instance ran,
// if that will be resumed (rule F4): changes of what was done already refuse the launch,
// unless they are accepted; others are a notice. A race is harmless: the launcher
// compares again.
func (s *Service) checkChanges(ctx context.Context, l *launch) error {
	if l.file == nil {
		return nil
	}
	last, err := s.config.Repository.LastExecution(ctx, l.job.Name, l.params.Key())
	if errors.Is(err, core.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the last execution: %w", err)
	}
	if last.Status == core.StatusCompleted || last.Definition.Hash == l.job.Definition.Hash {
		return nil
	}
	notice := Notice{Kind: NoticeChanged, Execution: last.ID, File: l.path, FromStart: l.options.FromStart,
		Actions: compareActions(last.ID, last.Definition, l.job.Definition, l.path)}
	if !notice.FromStart {
		if notice.Changes, err = l.file.Changes(ctx, last, s.config.Repository, l.params, s.config.Registry); err != nil {
			return err
		}
		if err := s.judgeChanges(notice.Changes, last, l); err != nil {
			return err
		}
	}
	l.hooks.notice(notice)
	return nil
}

func (s *Service) judgeChanges(changes []jobfile.Change, last *core.JobExecution, l *launch) error {
	var refused []string
	for _, c := range changes {
		if c.Refused {
			refused = append(refused, c.String())
		}
	}
	if len(refused) == 0 || l.options.AcceptChanges {
		return nil
	}
	r := &Refusal{Reason: ReasonChanged, Last: last.ID, Details: refused, Err: &jobfile.ChangedError{Execution: last.ID, Changes: changes},
		Actions: compareActions(last.ID, last.Definition, l.job.Definition, l.path)}
	if last.RedriveOf == 0 {
		r.Actions = append(r.Actions,
			Action{Kind: ActRestart, Execution: last.ID, File: l.path, AcceptChanges: true},
			Action{Kind: ActRestart, Execution: last.ID, File: l.path, FromStart: true})
	}
	return r
}
