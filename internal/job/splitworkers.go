package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// splitStep is a split with branches for workers, as a step: it plans a part for each branch and waits
// until the parts are over (rule P8).
type splitStep struct {
	live *live
	at   *model.SplitElement
	// subs are the walks of all branches; due marks those that workers walk.
	subs []*walk
	due  []bool
	// results are the outcomes of the branches, and errs the errors that stopped their walks.
	results []result
	errs    []error
	ended   bool
}

func (s *splitStep) Name() string { return s.at.Name }
func (s *splitStep) Kind() string { return "split" }

// Composite marks that the steps inside are bounded by themselves.
func (s *splitStep) Composite() {}

// OnWorkers reports that the branches' promotions are read when they are over.
func (s *splitStep) OnWorkers() bool { return true }

func isOnWorkers(at model.Element) bool {
	split, is := at.(*model.SplitElement)
	return is && split.OnWorkers
}

// splitOnWorkers has workers walk the branches that have something to do. Other branches, and all
// branches of a split that this attempt passed before it was parked, are passed here.
func (l *live) splitOnWorkers(ctx context.Context, w *walk, at *model.SplitElement, subs []*walk, before *core.StepExecution) (result, error) {
	s := &splitStep{live: l, at: at, subs: subs, due: make([]bool, len(subs)), results: make([]result, len(subs))}
	var parts []core.StepExecution
	if before != nil {
		var err error
		if parts, err = l.run.config.Repository.Partitions(ctx, before.ID); err != nil {
			return result{}, fmt.Errorf("split %s: %w", at.Name, err)
		}
		for _, part := range parts {
			if i := s.indexOf(part); i >= 0 {
				s.due[i] = true
			}
		}
	}
	for i, sub := range subs {
		if s.due[i] = s.due[i] || before == nil && l.isDue(ctx, sub); s.due[i] {
			continue
		}
		var err error
		if s.results[i], err = sub.walk(ctx); err != nil {
			return result{}, err
		}
	}
	if !slices.Contains(s.due, true) {
		return worst(s.results), nil
	}
	if before == nil || l.run.waitedFor(before.ID) {
		history := ports.StepHistory{}
		if before != nil {
			history.Last = *before
		}
		r, err := l.step(ctx, w, &model.StepElement{Step: s}, history)
		if err != nil || !s.ended {
			r.recorded = true
			return r, err
		}
	} else if err := s.collect(ctx, parts); err != nil {
		return result{}, err
	}
	r := worst(s.results)
	r.recorded = true
	return r, errors.Join(s.errs...)
}

// splitBefore returns the record of the split that this same attempt made before it was parked, or nil.
func (w *walk) splitBefore(at *model.SplitElement) *core.StepExecution {
	if !w.run.resuming {
		return nil
	}
	for i := range w.log.entries {
		e := &w.log.entries[i]
		if e.Element == at.Name && e.Ordinal == w.ordinal && e.Kind == ports.VisitStep && e.Execution == w.run.exec.ID {
			return e.record
		}
	}
	return nil
}

// isDue reports whether the walk of a branch would do more than pass complete elements. The plan of the
// walk decides (rule F6).
func (l *live) isDue(ctx context.Context, sub *walk) bool {
	d := newDry(nil)
	probe := *sub
	probe.port, probe.edges = d, map[string][]PlanEdge{}
	probe.run = &run{job: l.run.job, exec: l.run.jobNow(), progress: l.run.progress.clone(), journal: l.run.journal}
	_, err := probe.walk(ctx)
	return err != nil || slices.ContainsFunc(d.plan.Entries, func(e PlanEntry) bool { return e.Act != PlanPass })
}

// Execute implements model.Step.
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
	return endOf(run, worst(s.results).out)
}

// branches is the data about the run of a split and its branches that a worker needs.
type branches struct {
	Data          model.StepContext
	NewDefinition []string
	Walks         []branchWalk
}

// branchWalk is the data about the walk of a branch that a worker needs, in addition to its log.
type branchWalk struct {
	From, To               core.JobExecutionID
	Ended, History, Looped bool
}

func (s *splitStep) plan(ctx context.Context, run *model.StepRun) error {
	shared := branches{
		Data: model.StepContext{Job: run.Data.Job, Steps: run.Data.Steps, Last: run.Data.Last, AcceptChanges: run.Data.AcceptChanges}, NewDefinition: s.live.run.newDefinition,
	}
	shared.Data = shared.Data.Clone()
	shared.Data.Job.Definition = core.Definition{}
	var parts []core.Partition
	for i, sub := range s.subs {
		shared.Walks = append(shared.Walks, branchWalk{From: sub.within.from, To: sub.within.to, Ended: sub.ended, History: sub.history, Looped: sub.looped})
		if !s.due[i] {
			continue
		}
		part := core.Partition{Name: strconv.Itoa(i + 1), Index: i, Context: core.NewExecutionContext(), Flow: sub.id}
		if i < len(s.at.On) {
			part.On = s.at.On[i]
		}
		if err := part.Context.Put(core.IndexKey, i); err != nil {
			return err
		}
		parts = append(parts, part)
	}
	text, err := json.Marshal(shared)
	if err != nil {
		return fmt.Errorf("split %s: what workers need to know: %w", s.at.Name, err)
	}
	_, err = run.Services.Plans.PlanPartitions(ctx, run.Data.JobRef, ports.PartitionPlan{
		Manager: run.Ref, Step: s.at.Name, Parts: parts, ForWorkers: true, Shared: text,
	})
	return err
}

// indexOf returns the index of a part's branch, or -1 if the definition no longer has it.
func (s *splitStep) indexOf(part core.StepExecution) int {
	index := core.PartitionOf(s.at.Name, part).Index
	if index >= len(s.subs) {
		return -1
	}
	return index
}

// walkedKey is the key in the results of a branch's part that holds walked, as JSON.
const walkedKey = "walked"

// walked is the result of the walk of a branch, in addition to its outcome.
type walked struct {
	Steps  []core.StepExecutionID `json:"steps,omitempty"` // that ran, or were passed
	Last   core.StepExecutionID   `json:"last,omitempty"`
	Step   string                 `json:"step,omitempty"`   // step of the outcome
	Ran    bool                   `json:"ran,omitempty"`    // something ran
	Broken bool                   `json:"broken,omitempty"` // the walk could not continue
}

// collect reads the outcomes of the branches that workers walked.
func (s *splitStep) collect(ctx context.Context, parts []core.StepExecution) error {
	r := s.live.run
	for _, part := range parts {
		i := s.indexOf(part)
		if i < 0 {
			continue
		}
		out := core.Outcome{Status: part.Status, ExitCode: part.ExitCode, Message: part.Error, Settles: part.Settles}
		text, known := part.Out[walkedKey].(string)
		sub := s.subs[i]
		if !known { // no worker has ended it
			sub.ran = part.Assigned > 0
			if out.Status != core.StatusStopped {
				out.Message = fmt.Sprintf("branch %d of split %s: %s", i+1, s.at.Name, part.Error)
			}
			s.results[i].out = out
			continue
		}
		var w walked
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			return fmt.Errorf("branch %d of split %s: what its worker has stored: %w", i+1, s.at.Name, err)
		}
		records, err := r.config.Repository.StepsByID(ctx, w.Steps)
		if err != nil {
			return fmt.Errorf("branch %d of split %s: read its steps: %w", i+1, s.at.Name, err)
		}
		for _, id := range w.Steps {
			record := records[id]
			if record.JobExecutionID == r.exec.ID {
				r.progress.record(record)
			} else {
				r.progress.recordSkipped(record)
			}
			if id == w.Last {
				sub.last = &record
			}
		}
		out.Step, sub.ran = w.Step, w.Ran
		if w.Broken {
			s.errs = append(s.errs, errors.New(part.Error))
		}
		s.results[i].out = out
	}
	s.ended = true
	return nil
}
