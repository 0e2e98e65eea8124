package compile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/redrive"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/step"
)

// Redrive describes the run that redriven items make.
type Redrive struct {
	Plan     *redrive.Plan
	Instance core.JobInstanceID
	Steps    map[string]core.StepExecution
	// Watch is called before a step execution's components are made, its result before any is
	// opened; may be nil.
	Watch func() (check func(run *model.StepRun, parts chunk.Parts) error)
}

// RedriveJob makes a job of one chunk step that runs the skipped items of a plan (rule C12).
func RedriveJob(f *tree.File, deps Deps, r Redrive) (*model.Job, error) {
	of, err := chunkStep(f, r.Plan.Step)
	if err != nil {
		return nil, err
	}
	if database := f.DatabaseOf(of); database != r.Plan.Database() {
		return nil, &redrive.DatabaseError{Step: of.Name, Database: database, Items: r.Plan.Database()}
	}
	only, alone := *f, *of
	// A redrive has other numbers: the gate and the promotion of the step do not apply.
	alone.Partitioner, alone.Expect, alone.Promote = nil, nil, nil
	if r.Plan.Texts == 0 { // else it reads them
		alone.Reader = nil
	}
	only.Steps, only.Flow, only.Finally, only.Listeners = []*tree.Step{&alone}, nil, nil, nil
	c := &compiler{file: &only, deps: deps, redriveOf: r.Instance, redriveLater: r.later, problems: f.Doc.NewCollector()}
	c.checkDatabases()
	if err := c.problems.Err(); err != nil {
		return nil, err
	}
	inner := func(s *redrive.Step) (model.Step, error) {
		c.wrapParts = r.wrapParts(s, of.Reader.Out)
		made, err := c.work(&alone)
		if err := errors.Join(append(c.missing, err)...); err != nil {
			return nil, fmt.Errorf("step %s: %w", alone.Name, err)
		}
		return made, nil
	}
	work, err := r.step(inner)
	if err != nil {
		return nil, err
	}
	return &model.Job{
		Name: f.Name, Description: f.Model.Description, Parameters: f.ParametersNow(), Definition: f.Definition(),
		Restartable: true, Bind: c.bind, Exclusive: func(p core.Parameters) (core.ExclusiveKey, error) { return ExclusiveKey(f, p) }, RedriveOf: r.Plan.Execution,
		Flow: model.Flow{Elements: []model.Element{&model.StepElement{Step: work}}},
	}, nil
}

func (r Redrive) step(inner func(*redrive.Step) (model.Step, error)) (model.Step, error) {
	work, err := redrive.NewStep(r.Plan, r.Steps, inner)
	if err != nil || len(r.Plan.Parts) == 0 {
		return work, err
	}
	return step.NewPartitioned(step.PartitionConfig{Step: work, Workers: 1, Partitioner: func(context.Context, *model.StepRun) (core.Partitioner, error) {
		return r, nil
	}})
}

// Partition lists the partitions with redriven items: a core.Partitioner.
func (r Redrive) Partition(context.Context, *core.View) ([]core.Partition, error) {
	parts := make([]core.Partition, len(r.Plan.Parts))
	for i, recorded := range r.Plan.Parts {
		_, parts[i].Name, _ = strings.Cut(recorded, ":")
	}
	return parts, nil
}

func chunkStep(f *tree.File, recorded string) (*tree.Step, error) {
	name, _, _ := strings.Cut(recorded, ":")
	for _, s := range f.Steps {
		if s.Name != name {
			continue
		}
		if s.Reader == nil || s.Tasks != nil {
			return nil, fmt.Errorf("step %s reads no items in %s: it is not a chunk step", name, f.Doc.Path)
		}
		return s, nil
	}
	return nil, fmt.Errorf("there is no step %s in %s (%s)", name, f.Doc.Path, yamlfile.Suggest(name, f.StepNames()))
}

func (r Redrive) wrapParts(s *redrive.Step, itemType item.Type) func(makeParts) makeParts {
	return func(next makeParts) makeParts {
		return func(ctx context.Context, run *model.StepRun) (chunk.Parts, error) {
			if partition, is := r.partition(run); is {
				of := *run
				of.Data.Part, run = partition, &of
			}
			check := func(*model.StepRun, chunk.Parts) error { return nil }
			if r.Watch != nil {
				check = r.Watch()
			}
			parts, err := next(ctx, run)
			if err != nil {
				return parts, err
			}
			if parts.Reader, err = s.Reader(ctx, run, itemType, parts.Reader); err != nil {
				return parts, err
			}
			if err := r.checkPublishing(ctx, run, parts); err != nil {
				return parts, err
			}
			return parts, check(run, parts)
		}
	}
}

const redrivenKey = "surfin.redriven"

// checkPublishing refuses a redrive that publishes before the step has published, or after it
// has published again (rule C12b).
func (r Redrive) checkPublishing(ctx context.Context, run *model.StepRun, parts chunk.Parts) error {
	if !slices.ContainsFunc(parts.Writers, func(w item.Writer) bool { return item.Publishes(w.Component()) }) {
		return nil
	}
	of, err := r.newest(ctx, run)
	if err != nil || of == nil {
		return err
	}
	if of.Status != core.StatusCompleted {
		return &ports.RedriveLaterError{Step: *of}
	}
	began, continues := run.StepContext().Get(redrivenKey)
	if continues && began != int64(of.ID) {
		return &ports.RedriveStaleError{Step: *of}
	}
	return run.StepContext().Put(redrivenKey, int64(of.ID))
}

func (r Redrive) later(run *model.StepRun) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		of, err := r.newest(ctx, run)
		if err != nil || of == nil || of.Status == core.StatusCompleted {
			return err
		}
		return &ports.RedriveLaterError{Step: *of}
	}
}

func (r Redrive) newest(ctx context.Context, run *model.StepRun) (*core.StepExecution, error) {
	records, err := run.Services.Attempts.Newest(ctx, r.Instance, r.recorded(run))
	if err != nil || len(records) == 0 {
		return nil, err
	}
	return &records[0], nil
}

func (r Redrive) recorded(run *model.StepRun) string {
	if len(r.Plan.Parts) > 0 {
		return run.Step.Name
	}
	return r.Plan.Step
}

const partitionIndexKey = "surfin.index"

func (r Redrive) partition(run *model.StepRun) (*core.Partition, bool) {
	recorded := r.recorded(run)
	_, name, is := strings.Cut(recorded, ":")
	if !is {
		return nil, false
	}
	kept := run.Data.Steps[recorded].Context
	if kept == nil {
		kept = core.NewExecutionContext()
	}
	place, _ := kept.Get(partitionIndexKey)
	index, _ := place.(int64)
	return &core.Partition{Name: name, Index: int(index), Context: kept}, true
}
