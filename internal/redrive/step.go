package redrive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Step is a chunk step that reads the items of a plan: a [model.Step].
type Step struct {
	model.Step
	plan    *Plan
	earlier map[string]core.StepExecution
}

// Reader makes the reader of one execution; own, which may be nil, reads the texts.
func (s *Step) Reader(ctx context.Context, run *model.StepRun, itemType item.Type, own item.Reader) (item.Reader, error) {
	m, ok := run.Services.Checkpoints.(*marking)
	if !ok {
		return nil, errors.New("redrive: the step's reader is created outside Execute")
	}
	plan := s.plan
	if len(plan.Parts) > 0 {
		plan = plan.Of(run.Step.Name)
	}
	var err error
	m.reader, err = newReader(ctx, plan, itemType, own)
	return m.reader, err
}

// NewStep returns the step of a plan; earlier are the redriven execution's steps, inner makes the
// working step.
func NewStep(plan *Plan, earlier map[string]core.StepExecution, inner func(s *Step) (model.Step, error)) (*Step, error) {
	s := &Step{plan: plan, earlier: earlier}
	var err error
	if s.Step, err = inner(s); err != nil {
		return nil, err
	}
	return s, nil
}

// Timeout returns the timeout of the step that does the work.
func (s *Step) Timeout() time.Duration {
	if limited, ok := s.Step.(model.TimeLimited); ok {
		return limited.Timeout()
	}
	return 0
}

// StepListeners makes the working step's listeners. Its gate and promotion do not apply.
func (s *Step) StepListeners(ctx context.Context, run *model.StepRun) ([]any, error) {
	if listened, ok := s.Step.(model.Listened); ok {
		return listened.StepListeners(ctx, run)
	}
	return nil, nil
}

// Execute runs the step over the items that are left.
func (s *Step) Execute(ctx context.Context, run *model.StepRun) error {
	if got, want := run.Services.Checkpoints.Database(), s.plan.items.Database(); got != want {
		return &DatabaseError{Step: s.Name(), Database: got, Items: want}
	}
	at, err := chunk.FromStart(run.Step.Position)
	if err != nil {
		return err
	}
	run.Step.Position = at
	steps := maps.Clone(s.earlier)
	if steps == nil {
		steps = map[string]core.StepExecution{}
	}
	maps.Copy(steps, run.Data.Steps)
	run.Data.Steps = steps
	run.Services.Checkpoints = &marking{CheckpointStore: run.Services.Checkpoints, items: s.plan.items, run: run}
	run.Services.Stores = oneDatabase{}
	return s.Step.Execute(ctx, run)
}

// Sample runs the items of the plan through the processors, as Execute would, and writes nothing (see
// chunk.Step.Sample).
func (s *Step) Sample(ctx context.Context, run *model.StepRun, see func(id int64, got chunk.Sampled) error) error {
	work, ok := s.Step.(*chunk.Step)
	if !ok {
		return fmt.Errorf("step %s is not a chunk step", s.Name())
	}
	plan := s.plan
	if len(plan.Parts) > 0 {
		plan = plan.Of(run.Step.Name)
	}
	m := &marking{items: plan.items, run: run}
	run.Data.Steps, run.Services.Checkpoints = s.earlier, m
	return work.Sample(ctx, run, plan.Items, func(got chunk.Sampled) error { return see(m.reader.handed[len(m.reader.handed)-1], got) })
}

// marking marks the items of a checkpoint, except those skipped again, in the same transaction.
type marking struct {
	ports.CheckpointStore
	items  Items
	run    *model.StepRun
	reader *reader // of the execution in progress
}

func (m *marking) Checkpoint(ctx context.Context, ref ports.StepRef, c ports.Checkpoint) error {
	if err := m.CheckpointStore.Checkpoint(ctx, ref, c); err != nil {
		return err
	}
	from, to := outcomes(m.run.Step.Counters), outcomes(c.Counters)
	ids, err := m.reader.committed(from, to)
	if err != nil {
		return err
	}
	again := map[int64]bool{}
	for _, s := range c.Skipped {
		_, at, err := chunk.ParseMark(s.Mark)
		if err != nil {
			return fmt.Errorf("redrive: the mark of a skipped item: %w", err)
		}
		if len(s.Mark) == 0 || at < from || at >= to {
			return fmt.Errorf("redrive: the mark %q of a skipped item is not between outcomes %d and %d", s.Mark, from, to)
		}
		again[at] = true
	}
	done := make([]int64, 0, len(ids))
	for i, id := range ids {
		if !again[from+int64(i)] {
			done = append(done, id)
		}
	}
	return m.items.MarkRedriven(ctx, m.run.Data.Job.ID, done)
}

// oneDatabase: rows and marks in different databases could not commit together.
type oneDatabase struct{}

func (oneDatabase) Acquire(_ context.Context, run *model.StepRun, database string) (ports.ClaimedStore, error) {
	return nil, &DatabaseError{Step: run.Step.Name, Database: database, Items: run.Services.Checkpoints.Database()}
}

func (oneDatabase) HasCommitted(context.Context, string, core.JobInstanceID, string, core.StepExecutionID) (bool, error) {
	return false, nil
}

// DatabaseError refuses a redrive that could not commit an item and its mark
// together.
type DatabaseError struct{ Step, Database, Items string }

// Error names both databases.
func (e *DatabaseError) Error() string {
	return fmt.Sprintf("step %s writes to database %s, but the skipped items are in database %s: a redrive commits to both in one transaction, so it needs one database", e.Step, e.Database, e.Items)
}

// The counters belong to this attempt (rule C11).
func outcomes(c core.Counters) int64 { return c.Read + c.ReadSkip }
