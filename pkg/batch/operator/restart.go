package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

// Restart makes another attempt of an execution's instance, with the parameters that
// it had and the defaults of those added since, and returns when the new execution
// exists. The execution must be the newest of its instance, and FAILED or STOPPED; one
// that runs is taken over where its owner is lost, else it is refused.
//
// The causes of a Refusal, with those of a launch, are core.ErrNotFound,
// *core.InstanceCompleteError, core.ErrAbandoned, core.ErrUnknownStatus,
// core.ErrNotMostRecent, core.ErrNoSuchJob and core.ErrNotRestartable.
func (s *Service) Restart(ctx context.Context, req RestartRequest) (*Running, error) {
	e, err := s.record(ctx, req.Execution)
	if err != nil {
		return nil, err
	}
	if err := s.checkRestart(ctx, e); err != nil {
		return nil, err
	}
	l := &launch{hooks: req.Hooks, named: e, options: job.Options{FromStart: req.FromStart, AcceptChanges: req.AcceptChanges}}
	if l.definition, err = s.ofExecution(ctx, req.source(), e); err != nil {
		return nil, err
	}
	if l.job, err = s.compile(l.definition, s.watched(req.Hooks)); err != nil {
		return nil, err
	}
	if l.params, err = parametersAgain(l.job, e, nil); err != nil {
		return nil, err
	}
	return s.launch(ctx, l)
}

// record reads an execution that the caller named. The schema is as it should be.
func (s *Service) record(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error) {
	if err := s.Prepare(ctx); err != nil {
		return nil, err
	}
	e, err := s.config.Repository.Execution(ctx, id)
	if errors.Is(err, core.ErrNotFound) {
		return nil, &Refusal{Reason: ReasonNotFound, Execution: id, Err: err, Actions: []Action{{Kind: ActHistory}}}
	}
	return e, err
}

// checkRestart refuses what is not to be restarted. What runs is for the launch to
// judge: its owner may be dead.
func (s *Service) checkRestart(ctx context.Context, e *core.JobExecution) error {
	refuse := func(reason Reason, err error, actions ...Action) error {
		return &Refusal{Reason: reason, Execution: e.ID, Err: err, Actions: actions}
	}
	about := func(cause error) error { return fmt.Errorf("job %s, execution %d: %w", e.JobName, e.ID, cause) }
	look := Action{Kind: ActShow, Execution: e.ID, Status: e.Status}
	switch {
	case e.RedriveOf != 0:
		return refuse(ReasonRedrive, fmt.Errorf("execution %d is a redrive of execution %d: it goes on as one", e.ID, e.RedriveOf), s.restartAction(e, false))
	case e.Status == core.StatusCompleted:
		return refuse(ReasonComplete, &core.InstanceCompleteError{Execution: *e}, append([]Action{look}, anew(e)...)...)
	case e.Status == core.StatusAbandoned:
		return refuse(ReasonAbandoned, about(core.ErrAbandoned), append([]Action{look}, anew(e)...)...)
	case e.Status == core.StatusUnknown:
		return refuse(ReasonUnknown, about(core.ErrUnknownStatus), append([]Action{look, {Kind: ActAbandon, Execution: e.ID, Status: e.Status}}, anew(e)...)...)
	}
	newest, err := s.newestAttempt(ctx, e)
	if err != nil || newest.ID == e.ID {
		return err
	}
	actions := []Action{{Kind: ActShow, Execution: newest.ID, Status: newest.Status}}
	if isRestartable(newest.Status) {
		actions = append(actions, s.restartAction(newest, false))
	}
	return refuse(ReasonNotNewest, about(fmt.Errorf("%w: execution %d (%s)", core.ErrNotMostRecent, newest.ID, newest.Status)), actions...)
}

// newestAttempt returns the newest execution of the same instance.
func (s *Service) newestAttempt(ctx context.Context, e *core.JobExecution) (*core.JobExecution, error) {
	page, err := s.config.Repository.Executions(ctx, core.ExecutionFilter{Instance: e.InstanceID, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(page) == 0 { // it was purged in between
		return e, nil
	}
	return &page[0], nil
}

// isRestartable reports whether another attempt may be made of one in this status. One
// that runs can be taken over where its owner is lost, which this does not know.
func isRestartable(s core.Status) bool { return s == core.StatusFailed || s == core.StatusStopped }

// identifyingText is NAME=VALUE of the parameters that make the instance.
func identifyingText(params core.Parameters) string {
	var words []string
	for _, p := range params.All() {
		if !p.Identifying {
			continue
		}
		text, err := p.Canonical()
		if err != nil {
			text = fmt.Sprint(p.Value) // cannot be: NewParameters has checked it
		}
		words = append(words, p.Name+"="+text)
	}
	return strings.Join(words, " ")
}
