package step_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/step"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// A step of Go code. Job files make such steps of registered tasklets; Assemble makes a fresh one for
// every execution.
func ExampleNewTasklet() {
	_, db, done := testexample.SQLite("create table staging(id int)", "insert into staging values (1), (2)")
	defer done()
	empty := core.TaskletFunc(func(ctx context.Context, c *core.StepContribution) error {
		result, err := tx.ConnOf(ctx, db).ExecContext(ctx, "delete from staging")
		if err != nil {
			return err
		}
		c.Counters.Write, err = result.RowsAffected()
		return err
	})
	s, err := step.NewTasklet(step.TaskletConfig{
		Name: "empty", Database: db,
		Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) { return empty, nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run := &model.StepRun{Data: model.StepContext{Job: &core.JobExecution{}}, Step: &core.StepExecution{Name: s.Name()}} // the executor's work
	run.Services.Fill()
	fmt.Println(s.Kind(), s.Execute(context.Background(), run), run.Step.Counters.Write)
	// Output: tasklet <nil> 2
}

// An unsupported transaction is refused when the step is made.
func ExampleNewTasklet_refused() {
	_, db, done := testexample.SQLite()
	defer done()
	_, err := step.NewTasklet(step.TaskletConfig{
		Name: "count", Database: db, Attr: tx.Attr{Isolation: 2},
		Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) { return nil, nil },
	})
	fmt.Println(err)
	// Output: tasklet step count: database default (sqlite) does not have the isolation level Read Committed
}

// three lists the parts of the work.
type three struct{}

func (three) Partition(context.Context, *core.View) ([]core.Partition, error) {
	return []core.Partition{{Name: "one", Index: 0}, {Name: "two", Index: 1}, {Name: "three", Index: 2}}, nil
}

// A step that runs another one for each part of its work, two at a time. In a job file: `partition:
// {by: ..., workers: 2}`.
func ExampleNewPartitioned() {
	_, db, done := testexample.SQLite()
	defer done()
	inner, err := step.NewTasklet(step.TaskletConfig{
		Name: "load", Database: db, Attr: tx.Attr{Propagation: tx.NotSupported},
		Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) {
			return core.TaskletFunc(func(context.Context, *core.StepContribution) error { return nil }), nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := step.NewPartitioned(step.PartitionConfig{
		Step: inner, Workers: 2,
		Partitioner: func(context.Context, *model.StepRun) (core.Partitioner, error) { return three{}, nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Name(), s.Kind(), s.Workers(), core.PartName(s.Name(), "two"))
	// Output: load partition 2 load:two
}

// A step that runs another job: the parameters are made when it is first started.
func ExampleNewJob() {
	_, db, done := testexample.SQLite()
	defer done()
	report, err := step.NewTasklet(step.TaskletConfig{
		Name: "write", Database: db,
		Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) {
			return core.TaskletFunc(func(context.Context, *core.StepContribution) error { return nil }), nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	child := &model.Job{Name: "report", Restartable: true, Flow: model.Flow{Elements: []model.Element{&model.StepElement{Step: report}}}}
	s, err := step.NewJob(step.JobConfig{
		Name: "call", Job: child,
		Params: func(_ context.Context, v *core.View) (core.Parameters, error) { return v.Job.Params, nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Name(), s.Kind(), s.Child().Name)
	// Output: call job report
}
