package step_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// A step of Go code. Job files make such steps of registered tasklets; Assemble
// makes a fresh one for every execution.
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
		Assemble: func(context.Context, *core.StepRun) (core.Tasklet, error) { return empty, nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run := &core.StepRun{Job: &core.JobExecution{}, Step: &core.StepExecution{Name: s.Name()}} // the executor's work
	fmt.Println(s.Kind(), s.Execute(context.Background(), run), run.Step.Counters.Write)
	// Output: tasklet <nil> 2
}

// What the database cannot do is refused when the step is made.
func ExampleNewTasklet_refused() {
	_, db, done := testexample.SQLite()
	defer done()
	_, err := step.NewTasklet(step.TaskletConfig{
		Name: "count", Database: db, Attr: tx.Attr{Isolation: 2},
		Assemble: func(context.Context, *core.StepRun) (core.Tasklet, error) { return nil, nil },
	})
	fmt.Println(err)
	// Output: tasklet step count: database default (sqlite) does not have the isolation level Read Committed
}
