package operator

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/job/planner"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type dryRun struct {
	n        int
	accept   bool
	params   core.Parameters
	uses     []jobfile.Used
	job      *model.Job
	steps    []*DryStep
	handlers OpenTasks
}

func (d *dryRun) run(ctx context.Context, plan *planner.Plan) error {
	unsampled := map[string]model.Step{}
	for _, s := range slices.Concat(d.job.Flow.Steps(), d.job.Finally.Steps()) {
		unsampled[s.Name()] = s
	}
	for _, e := range plan.Entries {
		of := &DryStep{PlanEntry: planEntry(e), Kind: e.Kind}
		s := unsampled[e.Step]
		if s != nil && e.Act != planner.ActSkip && e.Act != planner.ActPass && e.Act != planner.ActLimit {
			delete(unsampled, e.Step)
			if err := d.step(ctx, s, e, of); err != nil {
				return err
			}
		}
		d.steps = append(d.steps, of)
	}
	return nil
}

func (d *dryRun) step(ctx context.Context, s model.Step, e planner.Entry, of *DryStep) error {
	d.describe(of)
	run := &model.StepRun{
		Data: model.StepContext{
			AcceptChanges: d.accept,
			Job:           &core.JobExecution{JobName: d.job.Name, Params: d.params, Context: core.NewExecutionContext(), Confinement: d.job.Confinement},
			Steps:         map[string]core.StepExecution{},
		},
	}
	if tasks, ok := s.(submitter); ok {
		return d.tasks(ctx, tasks, run, of)
	}
	var err error
	if whole, ok := s.(interface{ Inner() model.Step }); ok {
		sampled, is := whole.Inner().(*chunk.Step)
		var parts []core.Partition
		if parts, err = partitionsOf(ctx, s, run); err != nil {
			return d.unable(ctx, of, err)
		}
		for _, part := range parts {
			of.Partitions = append(of.Partitions, part.Name)
		}
		if !is || len(parts) == 0 {
			return nil
		}
		first := parts[0]
		run.Data.Name, run.Data.Part = core.PartName(s.Name(), first.Name), &first
		run.Step = &core.StepExecution{Name: run.Data.Name, Context: first.Context}
		s = sampled
	}
	sampled, ok := s.(*chunk.Step)
	if !ok {
		return nil
	}
	if run.Step == nil && e.Act == planner.ActResume && e.Before != nil {
		before := e.Before.Clone()
		run.Step = &before
	}
	of.Sampled = true
	err = sampled.Sample(ctx, run, d.n, func(got chunk.Sampled) error {
		of.see(got)
		return nil
	})
	return d.unable(ctx, of, err)
}

type submitter interface {
	Handler() string
	Items(ctx context.Context, run *model.StepRun) ([]json.RawMessage, error)
}

func (d *dryRun) tasks(ctx context.Context, s submitter, run *model.StepRun, of *DryStep) error {
	of.Component = s.Handler()
	own := *run
	own.Services.Fill()
	own.Step = &core.StepExecution{Name: of.Step, Context: core.NewExecutionContext()}
	warnings, err := d.handlers.HandlerWarnings(ctx, of.Component)
	if err != nil && !isMissingTable(err) {
		return err
	}
	of.Warnings = warnings
	items, err := s.Items(ctx, &own)
	of.Tasks = len(items)
	if err != nil && len(d.needs(of.Step)) == 0 && of.Reader == nil && ctx.Err() == nil { // from the list: the launch has checked the parts that it knows
		of.Waits = err.Error()
		return nil
	}
	return d.unable(ctx, of, err)
}

// unable decides about a step that could not be sampled: it has to wait for earlier steps, or it
// would fail.
func (d *dryRun) unable(ctx context.Context, of *DryStep, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	of.Sampled = false
	text := err.Error()
	if needs := d.needs(of.Step); len(needs) > 0 {
		of.Waits = "it needs " + humanize.And(needs) + ", known after the preceding steps have run"
		return nil
	}
	if makers := d.makers(of, err); len(makers) > 0 {
		of.Waits = text + " (" + humanize.And(makers) + " may create it)"
		return nil
	}
	of.Error = text
	return nil
}

func (d *dryRun) needs(step string) []string {
	var needs []string
	for _, u := range d.uses {
		for _, name := range u.Needs {
			head, _, _ := strings.Cut(name, ".")
			if u.Step == step && (head == "steps" || head == "context") && !slices.Contains(needs, name) {
				needs = append(needs, name)
			}
		}
	}
	return needs
}

func (d *dryRun) makers(of *DryStep, err error) []string {
	file, table := errors.Is(err, fs.ErrNotExist), isMissingTable(err)
	var makers []string
	for _, before := range d.steps {
		for _, w := range before.Writers {
			if file && w.file && of.Reader != nil && w.Target == of.Reader.Target || table && w.Database != "" {
				makers = append(makers, before.Step)
			}
		}
		if (file || table) && (before.Kind == "tasklet" || before.Kind == "job") {
			makers = append(makers, before.Step)
		}
	}
	return slices.Compact(makers)
}

// SQLite has no own code for it.
func isMissingTable(err error) bool {
	return dberr.SQLState(err) == "42P01" || dberr.SQLiteCode(err) == 1 && strings.Contains(err.Error(), "no such table")
}

func (d *dryRun) describe(of *DryStep) {
	for _, u := range d.uses {
		if u.Step != of.Step {
			continue
		}
		end := dryEnd(u)
		switch u.Kind {
		case registry.KindReader:
			of.Reader = &end
		case registry.KindProcessor:
			of.Processors = append(of.Processors, u.Component)
		case registry.KindWriter:
			of.Writers = append(of.Writers, end)
		case registry.KindTasklet:
			of.Component = u.Component
		case registry.KindListener, registry.KindPartitioner, registry.KindDecider:
		}
	}
}

func dryEnd(u jobfile.Used) DryEnd {
	end := DryEnd{Component: u.Component, Target: u.Target, Database: u.Database, Columns: u.Columns, file: u.File}
	if end.Target == "" {
		end.Target, end.file = u.Written, false
	}
	return end
}

// The plan is caught on its way to the repository, and nothing runs.
func partitionsOf(ctx context.Context, s model.Step, run *model.StepRun) ([]core.Partition, error) {
	c := &planCatcher{}
	own := *run
	own.Services.Fill()
	own.Services.Plans, own.Services.Executor = c, c
	own.Step = &core.StepExecution{Name: s.Name(), Context: core.NewExecutionContext()}
	if err := s.Execute(ctx, &own); err != nil && !errors.Is(err, errCaught) {
		return nil, err
	}
	return c.parts, nil
}

var errCaught = errors.New("a dry run stores no plan")

type planCatcher struct {
	model.Plans
	parts []core.Partition
}

func (c *planCatcher) PlanPartitions(_ context.Context, _ ports.JobRef, plan ports.PartitionPlan) ([]core.StepExecution, error) {
	c.parts = plan.Parts
	return nil, errCaught
}

func (c *planCatcher) Execute(context.Context, model.Step, *model.StepRun) (*core.StepExecution, error) {
	return nil, errCaught
}
