package step

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/partcount"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// maxPartName bounds the name of a partition, in bytes.
const maxPartName = 200

// plan returns the work to do, and stores it: all partitions at once before any of them starts, so that
// after a kill either all are known or none.
func (s *PartitionStep) plan(ctx context.Context, run *model.StepRun) (plan, error) {
	due, passed, err := s.Due(run)
	if err == nil && len(run.Data.Parts) == 0 {
		due, err = s.ask(ctx, run)
	}
	if err != nil || len(due) == 0 {
		return plan{passed: passed}, err
	}
	if err := s.checkTargets(ctx, run, due, passed); err != nil {
		return plan{}, err
	}
	earlier := map[string]core.StepExecution{}
	for _, p := range due {
		if last, ok := run.Data.Parts[p.Name]; ok && isResumed(run, last) {
			earlier[p.Name] = last
			if run.Data.NewDefinition && last.HasCommitted() {
				return plan{}, fmt.Errorf("partition %s of step %s: %w", p.Name, s.Name(), ports.ErrCommittedMeanwhile)
			}
		}
	}
	if err := s.place(due); err != nil {
		return plan{}, err
	}
	request := ports.PartitionPlan{
		Manager: run.Ref, Step: run.RecordName(s), Parts: due, Earlier: earlier, ForWorkers: s.runner.ForWorkers(),
	}
	if request.ForWorkers {
		if request.Shared, err = shared(run); err != nil {
			return plan{}, fmt.Errorf("step %s: the data that workers need: %w", s.Name(), err)
		}
	}
	if err := s.prepareParts(ctx, run, due); err != nil {
		return plan{}, err
	}
	records, err := run.Services.Plans.PlanPartitions(ctx, run.Data.JobRef, request)
	if err != nil {
		return plan{}, fmt.Errorf("store the plan of %d partitions: %w", len(due), err)
	}
	parts := make([]model.PlannedPartition, len(due))
	for i, p := range due {
		parts[i] = model.PlannedPartition{Partition: p, Record: records[i]}
		if last, ok := earlier[p.Name]; ok {
			parts[i].Earlier = &last
		}
	}
	return plan{due: parts, passed: passed}, nil
}

// shared returns the data of the run for workers, without data stored elsewhere or concerning the whole
// step.
func shared(run *model.StepRun) ([]byte, error) {
	data := run.Data.Clone()
	data.Job.Definition = core.Definition{}
	data.Earlier, data.Planned, data.Parts, data.Visit, data.Before = nil, nil, nil, core.Visit{}, nil
	data.Resumed, data.MayPark, data.NewDefinition = false, false, false
	return json.Marshal(data)
}

// planned returns the plan that this same attempt made before it was parked, or none.
func (s *PartitionStep) planned(ctx context.Context, run *model.StepRun) (plan, error) {
	records, err := run.Services.Plans.Partitions(ctx, run.Step.ID)
	if err != nil {
		return plan{}, err
	}
	var p plan
	own := map[string]bool{}
	for _, record := range records {
		part := ports.PartitionOf(run.RecordName(s), record)
		p.due = append(p.due, model.PlannedPartition{Partition: part, Record: record})
		own[part.Name] = true
	}
	for _, name := range frozen(run.Data.Parts) {
		if last := run.Data.Parts[name]; !own[name] && last.Status == core.StatusCompleted && !isSuperseded(run, last) {
			p.passed = append(p.passed, last)
		}
	}
	return p, nil
}

// checkTargets refuses partitions that would write one file, or another target that the step declares
// exclusive to one writer (rule C15b): including one that a partition has written in an earlier
// attempt.
func (s *PartitionStep) checkTargets(ctx context.Context, run *model.StepRun, due []core.Partition, passed []core.StepExecution) error {
	inner, ok := s.config.Step.(model.Targeted)
	if !ok {
		return nil
	}
	prefix := core.PartName(run.RecordName(s), "")
	all := slices.Clone(due)
	for _, p := range passed {
		all = append(all, core.Partition{Name: strings.TrimPrefix(p.Name, prefix), Index: indexOf(p), Context: contextOf(p)})
	}
	written := map[string]string{}
	for i := range all {
		own := *run // it is only read
		own.Data.Part, own.Data.Name = &all[i], prefix+all[i].Name
		targets, err := inner.Targets(ctx, &own)
		if err != nil {
			return fmt.Errorf("partition %s of step %s: %w", all[i].Name, s.Name(), err)
		}
		for _, target := range targets {
			if first, twice := written[target]; twice {
				return fmt.Errorf("partition step %s: partitions %s and %s would both write %s; use the partition in the path, as in out-${part.index}.csv", s.Name(), first, all[i].Name, target)
			}
			written[target] = all[i].Name
		}
	}
	return nil
}

// place sets the workers that may do the parts.
func (s *PartitionStep) place(due []core.Partition) (err error) {
	if s.config.On == nil || !s.runner.ForWorkers() {
		return nil
	}
	for i := range due {
		if due[i].On, err = s.config.On(due[i]); err != nil {
			return fmt.Errorf("partition step %s: %w", s.Name(), err)
		}
	}
	return nil
}

// prepareParts lets the step prepare what all parts need.
func (s *PartitionStep) prepareParts(ctx context.Context, run *model.StepRun, due []core.Partition) error {
	inner, ok := s.config.Step.(model.PartsPreparer)
	if !ok || len(due) == 0 {
		return nil
	}
	own := *run // it is only read
	own.Data.Part, own.Data.Name = &due[0], core.PartName(run.RecordName(s), due[0].Name)
	if err := inner.PrepareParts(ctx, &own); err != nil {
		return fmt.Errorf("partition step %s: %w", s.Name(), err)
	}
	return nil
}

// Due returns, of the partitions that earlier attempts planned, those that run now, in the order of the
// plan, and those that are passed, as they ended.
//
// A restart runs those that did not complete. A repetition from the start, of a step that completed
// (model.StepContext.Earlier is nil), runs all of them again, and so does its restart, if it ended
// before it had planned them; so does a restart with AllowStartIfComplete. ErrUnknownOutcome if it is
// unknown whether the work of one is committed, ErrAbandoned if one was given up.
func (s *PartitionStep) Due(run *model.StepRun) (due []core.Partition, passed []core.StepExecution, err error) {
	for _, name := range frozen(run.Data.Parts) {
		last := run.Data.Parts[name]
		all := isSuperseded(run, last) || s.config.AllowStartIfComplete
		switch {
		case last.Status == core.StatusUnknown || last.Status.IsRunning():
			return nil, nil, fmt.Errorf("partition %s of step %s is %s (step execution %d): %w", name, s.Name(), last.Status, last.ID, ports.ErrUnknownOutcome)
		case last.Status == core.StatusAbandoned && !all:
			return nil, nil, fmt.Errorf("partition %s of step %s (step execution %d): %w", name, s.Name(), last.ID, ports.ErrAbandoned)
		case last.Status == core.StatusCompleted && !all:
			passed = append(passed, last)
		default:
			p := core.Partition{Name: name, Index: indexOf(last), Context: contextOf(last)}
			if !isResumed(run, last) {
				if p.Context, err = plannedContext(last); err != nil {
					return nil, nil, fmt.Errorf("partition %s of step %s: %w", name, s.Name(), err)
				}
			}
			due = append(due, p)
		}
	}
	return due, passed, nil
}

// isSuperseded reports whether a partition's attempt belongs to finished work: the whole step completed
// since.
func isSuperseded(run *model.StepRun, last core.StepExecution) bool {
	return run.Data.Earlier == nil || last.ID < run.Data.Earlier.First
}

// isResumed reports whether a partition resumes at the end of its last attempt.
func isResumed(run *model.StepRun, last core.StepExecution) bool {
	return !isSuperseded(run, last) && last.Status != core.StatusCompleted
}

func frozen(parts map[string]core.StepExecution) []string {
	return slices.SortedFunc(maps.Keys(parts), func(a, b string) int {
		return cmp.Or(cmp.Compare(indexOf(parts[a]), indexOf(parts[b])), strings.Compare(a, b))
	})
}

func indexOf(record core.StepExecution) int {
	if record.Context == nil {
		return 0
	}
	index, ok := record.Context.Get(ports.IndexKey)
	if n, isInt := index.(int64); ok && isInt {
		return int(n)
	}
	return 0
}

func contextOf(record core.StepExecution) *core.ExecutionContext {
	if record.Context == nil {
		return core.NewExecutionContext()
	}
	return record.Context.Clone()
}

// planKey is the key of a partition's context that keeps the planned context, as JSON: a repetition
// begins with it.
const planKey = "surfin.plan"

// keepPlan stores the partitioner's values in a partition's context.
func keepPlan(c *core.ExecutionContext) error {
	if len(c.Keys()) == 0 {
		return nil
	}
	text, err := c.Encode()
	if err != nil {
		return err
	}
	return c.Put(planKey, string(text))
}

// plannedContext returns the context of a partition as planned.
func plannedContext(record core.StepExecution) (*core.ExecutionContext, error) {
	c := core.NewExecutionContext()
	var err error
	if text, kept := contextOf(record).Get(planKey); kept {
		if c, err = core.ParseExecutionContext([]byte(fmt.Sprint(text))); err != nil {
			return nil, fmt.Errorf("its planned context: %w", err)
		}
		err = keepPlan(c)
	}
	return c, errors.Join(err, c.Put(ports.IndexKey, indexOf(record)))
}

// ask calls the partitioner.
func (s *PartitionStep) ask(ctx context.Context, run *model.StepRun) (parts []core.Partition, err error) {
	parts, err = callWithGrace(ctx, run, func(own *model.StepRun) (parts []core.Partition, err error) {
		p, err := s.config.Partitioner(ctx, own)
		if err != nil {
			return nil, err
		}
		if closer, ok := p.(item.Closer); ok {
			defer func() { err = errors.Join(err, closer.Close(context.WithoutCancel(ctx))) }()
		}
		if planner, ok := p.(partcount.Planner); ok && !s.config.OnWorkers {
			planner.SetWorkers(s.config.Workers)
		}
		return p.Partition(ctx, own.View())
	})
	if err != nil {
		return nil, fmt.Errorf("partition step %s: %w", s.Name(), err)
	}
	parts = slices.Clone(parts)
	if err := check(parts); err != nil {
		return nil, fmt.Errorf("partition step %s: %w", s.Name(), err)
	}
	for i := range parts {
		p := &parts[i]
		p.Index = i
		if p.Context == nil {
			p.Context = core.NewExecutionContext()
		}
		if err := errors.Join(keepPlan(p.Context), p.Context.Put(ports.IndexKey, i)); err != nil {
			return nil, fmt.Errorf("partition %s of step %s: %w", p.Name, s.Name(), err)
		}
	}
	return parts, nil
}

// check reports too many partitions, and invalid names, a few of them.
func check(parts []core.Partition) error {
	if len(parts) > core.MaxPartitions {
		return fmt.Errorf("%d partitions are more than the allowed %d: each is a row that is stored before the first one starts; make larger partitions",
			len(parts), core.MaxPartitions)
	}
	seen := make(map[string]int, len(parts))
	var wrong []string
	for i, p := range parts {
		if why := misnamed(p.Name); why != "" {
			wrong = append(wrong, fmt.Sprintf("partition %d: the name %q %s", i, p.Name, why))
		} else if first, twice := seen[p.Name]; twice {
			wrong = append(wrong, fmt.Sprintf("partitions %d and %d have the same name %q", first, i, p.Name))
		}
		seen[p.Name] = i
	}
	if len(wrong) == 0 {
		return nil
	}
	return errors.New(few(wrong, "; "))
}

func misnamed(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxPartName:
		return fmt.Sprintf("has %d bytes, more than the allowed %d", len(name), maxPartName)
	case !utf8.ValidString(name):
		return "is not UTF-8"
	}
	if i := strings.IndexFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./", r)
	}); i >= 0 {
		r, _ := utf8.DecodeRuneInString(name[i:])
		return fmt.Sprintf("has the character %q (allowed: letters, digits and _ - . /)", r)
	}
	return ""
}
