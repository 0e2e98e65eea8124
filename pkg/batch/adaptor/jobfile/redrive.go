package jobfile

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile/internal/strict"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/chunk/redrive"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Redrive is what CompileRedrive needs to know.
type Redrive struct {
	// Plan says which items of which step.
	Plan *redrive.Plan
	// Steps are the steps of the execution that is redriven, by name: expressions
	// such as steps.NAME.read are about them.
	Steps map[string]core.StepExecution
	// Check is asked when the step has been assembled, before anything is opened;
	// may be nil.
	Check func(run *core.StepRun, parts chunk.Parts) error
}

// CompileRedrive makes a job of one chunk step of the file, which runs the skipped
// items of a plan through the step's processors and writers instead of what its
// reader would read (rule C12). Errors are those of Compile, or a step that is not
// there or is no chunk step.
func (f *File) CompileRedrive(deps Deps, r Redrive) (*core.Job, error) {
	of, err := f.chunkStep(r.Plan.Step)
	if err != nil {
		return nil, err
	}
	if database := (&compiler{file: f}).database(of); database != r.Plan.Database() {
		return nil, &redrive.DatabaseError{Step: of.name, Database: database, Items: r.Plan.Database()}
	}
	only, alone := *f, *of
	alone.reader, alone.edges = nil, nil
	only.steps = []*stepDef{&alone}
	c := &compiler{file: &only, deps: deps, problems: f.doc.NewCollector()}
	c.checkDatabases()
	if err := c.problems.Err(); err != nil {
		return nil, err
	}
	inner := func(s *redrive.Step) (core.Step, error) {
		c.assembled = r.assembled(s, of.reader.out)
		made, err := c.element(&alone)
		if err := errors.Join(append(c.missing, err)...); err != nil {
			return nil, fmt.Errorf("step %s: %w", alone.name, err)
		}
		return made.(*core.StepElement).Step, nil //nolint:forcetypeassert // a step is compiled to nothing else
	}
	step, err := redrive.NewStep(r.Plan, r.Steps, inner)
	if err != nil {
		return nil, err
	}
	return &core.Job{
		Name: f.name, Description: f.model.Description, Parameters: f.Parameters(), Definition: f.Definition(),
		Restartable: true, Bind: only.bind, RedriveOf: r.Plan.Execution,
		Flow: core.Flow{Elements: []core.Element{&core.StepElement{Step: step}}},
	}, nil
}

func (f *File) chunkStep(name string) (*stepDef, error) {
	for _, s := range f.steps {
		if s.name != name {
			continue
		}
		if s.reader == nil {
			return nil, fmt.Errorf("step %s reads no items in %s: it is not a chunk step", name, f.Path())
		}
		return s, nil
	}
	return nil, fmt.Errorf("there is no step %s in %s (%s)", name, f.Path(), strict.Suggest(name, f.Steps()))
}

// assembled puts the reader of the redrive in its place.
func (r Redrive) assembled(s *redrive.Step, item core.ItemType) func(assemble) assemble {
	return func(next assemble) assemble {
		return func(ctx context.Context, run *core.StepRun) (chunk.Parts, error) {
			parts, err := next(ctx, run)
			if err != nil {
				return parts, err
			}
			if parts.Reader, err = s.Reader(ctx, item); err != nil {
				return parts, err
			}
			if r.Check != nil {
				err = r.Check(run, parts)
			}
			return parts, err
		}
	}
}
