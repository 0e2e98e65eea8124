package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type admission struct {
	schema  *schema
	judge   *judge
	records ports.Launches
}

func (s *admission) refused(ctx context.Context, err error, l *launch) error {
	r := &Refusal{Reason: reasonOf(err), Err: err}
	again := launchAction(refusal.ActAgain, l.path, l.params, l.job.Parameters)
	switch r.Reason { //nolint:exhaustive // a launch has no other
	case "":
		return err
	case refusal.Moved:
		return s.judge.moved(ctx, err)
	case refusal.Complete:
		complete, _ := errors.AsType[*ports.InstanceCompleteError](err)
		other, failure := s.otherInstance(ctx, l.job, l.params, l.path)
		if failure != nil {
			return errors.Join(err, failure)
		}
		if r.Actions = other; l.job.Incrementer != nil {
			r.Actions = append(r.Actions, Action{Kind: refusal.ActNext, File: l.path})
		}
		r.Actions = append(r.Actions, again, Action{Kind: refusal.ActShow, Execution: complete.Execution.ID, Status: complete.Execution.Status})
	case refusal.Running:
		running, _ := errors.AsType[*ports.AlreadyRunningError](err)
		r.Actions = s.judge.whileRunning(ctx, running.ExecutionID, running.Owner, running.Open)
	case refusal.Exclusive:
		r.Actions = s.judge.whileExcluded(ctx, err)
	case refusal.Unknown:
		r.Actions = s.afterUnknown(ctx, l, again)
	case refusal.NotRestartable, refusal.Abandoned, refusal.NotNewest, refusal.IllegalState:
		r.Actions = []Action{{Kind: refusal.ActHistory, Job: l.job.Name}, again}
	case refusal.Changed:
		if changed, is := errors.AsType[*jobfile.ChangedError](err); is && l.last != nil {
			return changedRefusal(changed, l.last, l)
		}
	case refusal.From:
		return s.notFrom(err, l)
	case refusal.Parameters:
		r.Actions = []Action{{Kind: refusal.ActHelp, File: l.path}}
		if former, is := errors.AsType[*ports.FormerInstanceError](err); is {
			r.Actions = afterFormer(former, again)
		}
	case refusal.Schema:
		r.Actions = []Action{{Kind: refusal.ActMigrate}}
	}
	return r
}

// Running or not restartable executions are left for the launch to judge.
func (s *admission) checkRestart(ctx context.Context, e *core.JobExecution, req RestartRequest) error {
	if e.RedriveOf != 0 {
		return &Refusal{Reason: refusal.Redrive, Execution: e.ID, Actions: []Action{s.judge.restartAction(e, false)},
			Err: fmt.Errorf("execution %d is a redrive of execution %d: continue it with a redrive", e.ID, e.RedriveOf)}
	}
	newest, err := s.judge.newestAttempt(ctx, e)
	if err != nil {
		return err
	}
	if err := s.judge.unmoved(ctx, e.ID, req.Epoch, newest); err != nil {
		return err
	}
	if newest.Execution.ID != e.ID {
		return s.judge.notNewest(ctx, &ports.NotNewestError{JobName: e.JobName, Execution: e.ID, Newest: newest.Execution.ID, Status: newest.Execution.Status})
	}
	refused := newest.Refusal(true)
	if req.IfComplete {
		refused = newest.RefusalIfComplete(true)
	}
	reason := reasonOf(refused)
	if reason == "" || reason == refusal.Running {
		return nil
	}
	r := &Refusal{Reason: reason, Execution: e.ID, Err: refused, Actions: []Action{{Kind: refusal.ActShow, Execution: e.ID, Status: e.Status}}}
	if r.Actions = append(r.Actions, s.judge.actionsFor(e, &newest)...); reason == refusal.Complete {
		if req.From != "" {
			r.Actions = append(r.Actions, Action{Kind: refusal.ActRestart, Execution: e.ID, Status: e.Status, File: req.File, From: req.From, IfComplete: true})
		}
		r.Actions = append(r.Actions, newInstance(e)...)
	}
	return r
}

// admits refuses, before anything is planned, a restart that the launch would refuse now.
func (s *admission) admits(ctx context.Context, l *launch) error {
	newest, err := s.judge.newestAttempt(ctx, l.named)
	if err != nil {
		return err
	}
	refused := newest.Refusal(l.job.Restartable)
	if l.options.IfComplete {
		refused = newest.RefusalIfComplete(l.job.Restartable)
	}
	if refused != nil {
		return s.refused(ctx, refused, l)
	}
	return nil
}

// checkFormer refuses parameters that named another instance in earlier
// versions (rule D5). The launch asks the repository again.
func (s *admission) checkFormer(ctx context.Context, l *launch) error {
	if has, err := s.schema.hasHistory(ctx); !has {
		return err
	}
	err := s.records.CheckFormer(ctx, l.job.Name, l.params)
	if err == nil {
		return nil
	}
	return s.refused(ctx, err, l)
}

// excluded queries the repository as a launch does (rule L12).
func (s *admission) excluded(ctx context.Context, j *model.Job, params core.Parameters) (*Refusal, error) {
	if has, err := s.schema.hasHistory(ctx); !has {
		return nil, err
	}
	err := job.CheckExclusive(ctx, s.records, j, params, s.judge.dead)
	if reasonOf(err) != refusal.Exclusive {
		return nil, err
	}
	return &Refusal{Reason: refusal.Exclusive, Err: err, Actions: s.judge.whileExcluded(ctx, err)}, nil
}

func (s *admission) otherInstance(ctx context.Context, j *model.Job, params core.Parameters, path string) ([]Action, error) {
	other, ok := otherParameter(j, params)
	if !ok {
		return nil, nil
	}
	if last, err := s.judge.lastExecution(ctx, j.Name, other.Key()); err != nil || last != nil {
		return nil, err
	}
	return []Action{launchAction(refusal.ActRun, path, other, j.Parameters)}, nil
}

func (s *admission) afterUnknown(ctx context.Context, l *launch, again Action) []Action {
	last, err := s.judge.records.LastExecution(ctx, l.job.Name, l.params.Key())
	if err != nil {
		return []Action{{Kind: refusal.ActHistory, Job: l.job.Name}, again}
	}
	return []Action{{Kind: refusal.ActShow, Execution: last.ID, Status: last.Status}, {Kind: refusal.ActAbandon, Execution: last.ID, Status: last.Status}, again}
}

func (s *admission) notFrom(err error, l *launch) error {
	refused, _ := errors.AsType[*journal.FromError](err)
	placed := *refused
	if refused.Cause == journal.FromUnknown {
		placed.Near = nearest.Name(refused.Element, refused.Known)
	}
	placed.Known, placed.Reached = s.places(l, refused.Known), s.places(l, refused.Reached)
	r := &Refusal{Reason: refusal.From, Execution: l.named.ID, Err: &placed}
	again := Action{Kind: refusal.ActRestart, Execution: l.named.ID, Status: l.named.Status, IfComplete: l.options.IfComplete}
	for _, instead := range []string{placed.Near, refused.Split} {
		if slices.Contains(refused.Reached, instead) {
			again.From = instead
			r.Actions = append(r.Actions, again)
		}
	}
	if refused.Cause != journal.FromUnknown && l.named.Status != core.StatusCompleted {
		r.Actions = append(r.Actions, Action{Kind: refusal.ActRestart, Execution: l.named.ID, Status: l.named.Status})
	}
	r.Actions = append(r.Actions, Action{Kind: refusal.ActShow, Execution: l.named.ID, Status: l.named.Status})
	return r
}

func (s *admission) places(l *launch, names []string) []string {
	placed := slices.Clone(names)
	for i, name := range placed {
		if l.file == nil {
			continue
		}
		if place := l.file.PlaceOf(name); place != "" {
			placed[i] += " (" + place + ")"
		}
	}
	return placed
}

type comparison struct {
	records     comparedRecords
	checkpoints Checkpoints // may be nil
	registry    *registry.Registry
}

type comparedRecords interface {
	ports.Explorer
	Database() string
}

func (s *comparison) changes(ctx context.Context, last *core.JobExecution, l *launch) ([]jobfile.Change, error) {
	changes, err := l.file.Changes(ctx, jobfile.Restart{
		Last: last, Params: l.params, History: s.restartHistory(l, last), Registry: s.registry,
	})
	var changed *jobfile.ChangedError
	if !errors.As(err, &changed) {
		return changes, err
	}
	return changes, changedRefusal(changed, last, l)
}

func changedRefusal(changed *jobfile.ChangedError, last *core.JobExecution, l *launch) *Refusal {
	r := &Refusal{Reason: refusal.Changed, Last: last.ID, Details: changed.Refused(), Diff: changed.Diff, Err: changed}
	if last.Definition.Hash != l.job.Definition.Hash {
		r.Actions = compareActions(changed.Execution, last.Definition, l.job.Definition, l.path)
	}
	if last.RedriveOf == 0 {
		r.Actions = append(r.Actions,
			Action{Kind: refusal.ActRestart, Execution: last.ID, File: l.path, AcceptChanges: true},
			Action{Kind: refusal.ActRestart, Execution: last.ID, File: l.path, FromStart: true})
	}
	return r
}

func (s *comparison) restartHistory(l *launch, last *core.JobExecution) ports.History {
	h := ports.History{Records: s.records, Database: s.records.Database()}
	if l.from != nil {
		h.Records = l.from.Records(h.Records, last.InstanceID)
	}
	if s.checkpoints != nil {
		h.Checkpoints = s.checkpoints
	}
	return h
}
