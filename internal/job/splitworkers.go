package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/surfin-batch/surfin/internal/job/planner"
	"github.com/surfin-batch/surfin/internal/job/walk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// splitStep plans a part for each branch for workers and waits until they are
// over (rule P8).
type splitStep struct {
	live *live
	at   *model.SplitElement
	// Walks of all branches; due marks those that workers walk.
	subs    []*walk.Walk
	due     []bool
	results []walk.Result
	errs    []error
	ended   bool
}

func (s *splitStep) Name() string { return s.at.Name }
func (s *splitStep) Kind() string { return "split" }

func (s *splitStep) Composite() {}

func (s *splitStep) OnWorkers() bool { return true }

func (l *live) splitOnWorkers(ctx context.Context, w *walk.Walk, at *model.SplitElement, subs []*walk.Walk, before *core.StepExecution) (walk.Result, error) {
	s := &splitStep{live: l, at: at, subs: subs, due: make([]bool, len(subs)), results: make([]walk.Result, len(subs))}
	var parts []core.StepExecution
	if before != nil {
		var err error
		if parts, err = l.run.config.Repository.Partitions(ctx, before.ID); err != nil {
			return walk.Result{}, fmt.Errorf("split %s: %w", at.Name, err)
		}
		for _, part := range parts {
			if i := s.indexOf(part); i >= 0 {
				s.due[i] = true
			}
		}
	}
	for i, sub := range subs {
		if s.due[i] = s.due[i] || before == nil && l.run.isDue(ctx, sub); s.due[i] {
			continue
		}
		var err error
		if s.results[i], err = sub.Run(ctx); err != nil {
			return walk.Result{}, err
		}
	}
	if !slices.Contains(s.due, true) {
		return walk.Worst(s.results), nil
	}
	if before == nil || l.run.attempt.HasWaited(before.ID) {
		history := ports.StepHistory{}
		if before != nil {
			history.Last = *before
		}
		r, err := l.Step(ctx, w, &model.StepElement{Step: s}, history)
		if err != nil || !s.ended {
			r.Recorded = true
			return r, err
		}
	} else if err := s.collect(ctx, parts); err != nil {
		return walk.Result{}, err
	}
	r := walk.Worst(s.results)
	r.Recorded = true
	return r, errors.Join(s.errs...)
}

func (r *run) splitBefore(w *walk.Walk, at *model.SplitElement) *core.StepExecution {
	if !r.attempt.Resuming {
		return nil
	}
	for i := range w.Log.Entries {
		e := &w.Log.Entries[i]
		if e.Element == at.Name && e.Ordinal == w.Ordinal && e.Kind == ports.VisitStep && e.Execution == r.exec.ID {
			return e.Record
		}
	}
	return nil
}

func (r *run) isDue(ctx context.Context, branch *walk.Walk) bool {
	return planner.IsDue(ctx, branch, r.job, r.snapshot(), r.attempt.Journal, r.attempt.Progress.Clone())
}

func (s *splitStep) Execute(ctx context.Context, run *model.StepRun) error {
	if !run.Data.Resumed {
		if err := s.plan(ctx, run); err != nil {
			return err
		}
	}
	if err := run.AwaitParts(ctx, parkedPoll); err != nil {
		return err
	}
	parts, err := run.Services.Plans.Partitions(ctx, run.Step.ID)
	if err != nil {
		return err
	}
	if err := s.collect(ctx, parts); err != nil {
		return err
	}
	if err := errors.Join(s.errs...); err != nil {
		return err
	}
	return walk.EndStep(run, walk.Worst(s.results).Outcome)
}

type sharedSplit struct {
	Data          model.StepContext
	NewDefinition []string
	Walks         []branchStart
}

type branchStart struct {
	From, To               core.JobExecutionID
	Ended, History, Looped bool
}

func (s *splitStep) plan(ctx context.Context, run *model.StepRun) error {
	shared := sharedSplit{
		Data: model.StepContext{Job: run.Data.Job, Steps: run.Data.Steps, Last: run.Data.Last, AcceptChanges: run.Data.AcceptChanges}, NewDefinition: s.live.run.changedSteps,
	}
	shared.Data = shared.Data.Clone()
	shared.Data.Job.Definition = core.Definition{}
	var parts []core.Partition
	for i, sub := range s.subs {
		shared.Walks = append(shared.Walks, branchStart{From: sub.Within.From, To: sub.Within.To, Ended: sub.HasEnd, History: sub.IsEarlierRound, Looped: sub.Looped})
		if !s.due[i] {
			continue
		}
		part := core.Partition{Name: strconv.Itoa(i + 1), Index: i, Context: core.NewExecutionContext(), Flow: sub.ID}
		if i < len(s.at.On) {
			part.On = s.at.On[i]
		}
		if err := part.Context.Put(ports.IndexKey, i); err != nil {
			return err
		}
		parts = append(parts, part)
	}
	text, err := json.Marshal(shared)
	if err != nil {
		return fmt.Errorf("split %s: encode the data for workers: %w", s.at.Name, err)
	}
	_, err = run.Services.Plans.PlanPartitions(ctx, run.Data.JobRef, ports.PartitionPlan{
		Manager: run.Ref, Step: s.at.Name, Parts: parts, ForWorkers: true, Shared: text,
	})
	return err
}

func (s *splitStep) indexOf(part core.StepExecution) int {
	index := ports.PartitionOf(s.at.Name, part).Index
	if index >= len(s.subs) {
		return -1
	}
	return index
}

const branchResultKey = "walked"

type branchResult struct {
	Steps  []core.StepExecutionID `json:"steps,omitempty"` // that ran, or were passed
	Last   core.StepExecutionID   `json:"last,omitempty"`
	Step   string                 `json:"step,omitempty"`   // step of the outcome
	Ran    bool                   `json:"ran,omitempty"`    // something ran
	Broken bool                   `json:"broken,omitempty"` // the walk could not continue
}

func (s *splitStep) collect(ctx context.Context, parts []core.StepExecution) error {
	r := s.live.run
	for _, part := range parts {
		i := s.indexOf(part)
		if i < 0 {
			continue
		}
		out := core.Outcome{Status: part.Status, ExitCode: part.ExitCode, Message: part.Error, Settles: part.Settles}
		text, known := part.Out[branchResultKey].(string)
		sub := s.subs[i]
		if !known { // no worker has ended it
			sub.Ran = part.Assigned > 0
			if out.Status != core.StatusStopped {
				out.Message = fmt.Sprintf("branch %d of split %s: %s", i+1, s.at.Name, part.Error)
			}
			s.results[i].Outcome = out
			continue
		}
		var w branchResult
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			return fmt.Errorf("branch %d of split %s: read the result of its worker: %w", i+1, s.at.Name, err)
		}
		records, err := r.config.Repository.StepsByID(ctx, w.Steps)
		if err != nil {
			return fmt.Errorf("branch %d of split %s: read its steps: %w", i+1, s.at.Name, err)
		}
		for _, id := range w.Steps {
			record := records[id]
			if record.Unreadable != nil {
				return record.Unreadable
			}
			if record.JobExecutionID == r.exec.ID {
				r.attempt.Progress.Record(record)
			} else {
				r.attempt.Progress.RecordPassed(record)
			}
			if id == w.Last {
				sub.Last = &record
			}
		}
		out.Step, sub.Ran = w.Step, w.Ran
		if w.Broken {
			s.errs = append(s.errs, errors.New(part.Error))
		}
		s.results[i].Outcome = out
	}
	s.ended = true
	return nil
}
