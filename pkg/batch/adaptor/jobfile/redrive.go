package jobfile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile/internal/strict"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/chunk/redrive"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Redrive says what CompileRedrive runs.
type Redrive struct {
	// Plan says which items of which step.
	Plan *redrive.Plan
	// Instance is that of the execution that is redriven.
	Instance core.JobInstanceID
	// Steps are the steps of the execution that is redriven, by name: expressions
	// such as steps.NAME.read are about them.
	Steps map[string]core.StepExecution
	// Check is called with the parts of the step, before anything is opened; may be nil.
	Check func(run *core.StepRun, parts chunk.Parts) error
}

// CompileRedrive makes a job of one chunk step of the file, which runs the skipped
// items of a plan, not those of its reader, through the step's processors and writers
// (rule C12). It fails as Compile does, and where the plan's step is missing or is not a
// chunk step.
func (f *File) CompileRedrive(deps Deps, r Redrive) (*core.Job, error) {
	of, err := f.chunkStep(r.Plan.Step)
	if err != nil {
		return nil, err
	}
	if database := (&compiler{file: f}).database(of); database != r.Plan.Database() {
		return nil, &redrive.DatabaseError{Step: of.name, Database: database, Items: r.Plan.Database()}
	}
	only, alone := *f, *of
	// A redrive has other numbers: the gate and the promotion of the step do not apply.
	alone.partitioner, alone.expect, alone.promote = nil, nil, nil
	if r.Plan.Texts == 0 { // else it reads them
		alone.reader = nil
	}
	only.steps, only.flow, only.finally, only.listeners = []*stepDef{&alone}, nil, nil, nil
	c := &compiler{file: &only, deps: deps, redriveOf: r.Instance, problems: f.doc.NewCollector()}
	c.checkDatabases()
	if err := c.problems.Err(); err != nil {
		return nil, err
	}
	inner := func(s *redrive.Step) (core.Step, error) {
		c.wrapParts = r.wrapParts(s, of.reader.out)
		made, err := c.work(&alone)
		if err := errors.Join(append(c.missing, err)...); err != nil {
			return nil, fmt.Errorf("step %s: %w", alone.name, err)
		}
		return made, nil
	}
	step, err := redrive.NewStep(r.Plan, r.Steps, inner)
	if err != nil {
		return nil, err
	}
	return &core.Job{
		Name: f.name, Description: f.model.Description, Parameters: f.Parameters(), Definition: f.Definition(),
		Restartable: true, Bind: c.bind, Exclusive: f.Exclusive, RedriveOf: r.Plan.Execution,
		Flow: core.Flow{Elements: []core.Element{&core.StepElement{Step: step}}},
	}, nil
}

// chunkStep finds a step by the name of its executions: those of partitions are
// called STEP:PARTITION.
func (f *File) chunkStep(recorded string) (*stepDef, error) {
	name, _, _ := strings.Cut(recorded, ":")
	for _, s := range f.steps {
		if s.name != name {
			continue
		}
		if s.reader == nil || s.tasks != nil {
			return nil, fmt.Errorf("step %s reads no items in %s: it is not a chunk step", name, f.Path())
		}
		return s, nil
	}
	return nil, fmt.Errorf("there is no step %s in %s (%s)", name, f.Path(), strict.Suggest(name, f.Steps()))
}

// wrapParts replaces the reader by that of the redrive.
func (r Redrive) wrapParts(s *redrive.Step, itemType item.Type) func(makeParts) makeParts {
	return func(next makeParts) makeParts {
		return func(ctx context.Context, run *core.StepRun) (chunk.Parts, error) {
			if partition, is := r.partition(run); is {
				of := *run
				of.Data.Part, run = partition, &of
			}
			parts, err := next(ctx, run)
			if err != nil {
				return parts, err
			}
			if parts.Reader, err = s.Reader(ctx, itemType, parts.Reader); err != nil {
				return parts, err
			}
			if r.Check != nil {
				err = r.Check(run, parts)
			}
			return parts, err
		}
	}
}

// partitionIndexKey is the key of a partition's index in its context.
const partitionIndexKey = "surfin.index"

// partition is the partition whose items are redriven: what ${part.NAME} reads.
func (r Redrive) partition(run *core.StepRun) (*core.Partition, bool) {
	_, name, is := strings.Cut(r.Plan.Step, ":")
	if !is {
		return nil, false
	}
	kept := run.Data.Steps[r.Plan.Step].Context
	if kept == nil {
		kept = core.NewExecutionContext()
	}
	place, _ := kept.Get(partitionIndexKey)
	index, _ := place.(int64)
	return &core.Partition{Name: name, Index: int(index), Context: kept}, true
}
