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
	l := &launch{hooks: req.Hooks, named: e, options: job.Options{FromStart: req.FromStart, AcceptChanges: req.AcceptChanges, Task: req.Task, Request: req.Key}}
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

// checkRestart refuses what a launch would refuse. What runs, or is not restartable, is
// for the launch to judge.
func (s *Service) checkRestart(ctx context.Context, e *core.JobExecution) error {
	if e.RedriveOf != 0 {
		return &Refusal{Reason: ReasonRedrive, Execution: e.ID, Actions: []Action{s.restartAction(e, false)},
			Err: fmt.Errorf("execution %d is a redrive of execution %d: it goes on as one", e.ID, e.RedriveOf)}
	}
	newest, err := s.newestAttempt(ctx, e)
	if err != nil {
		return err
	}
	if newest.Execution.ID != e.ID {
		return s.notNewest(ctx, &core.NotNewestError{JobName: e.JobName, Execution: e.ID, Newest: newest.Execution.ID, Status: newest.Execution.Status})
	}
	refused := newest.Refusal(true)
	reason := reasonOf(refused)
	if reason == "" || reason == ReasonRunning {
		return nil
	}
	r := &Refusal{Reason: reason, Execution: e.ID, Err: refused, Actions: []Action{{Kind: ActShow, Execution: e.ID, Status: e.Status}}}
	if r.Actions = append(r.Actions, s.actionsFor(e, newest)...); reason == ReasonComplete {
		r.Actions = append(r.Actions, anew(e)...)
	}
	return r
}

// identifyingText is NAME=VALUE of the parameters that make the instance.
func identifyingText(params core.Parameters) string {
	var words []string
	for _, p := range params.Identifying().All() {
		words = append(words, p.Name+"="+p.Text())
	}
	return strings.Join(words, " ")
}
