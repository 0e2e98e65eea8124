package job_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/step"
)

// The whole engine, put together by hand; package batch builds it from settings.
func ExampleNewLauncher() {
	ctx := context.Background()
	_, db, done := testexample.SQLite()
	defer done()
	r := repository.New(db, repository.Options{})
	testexample.Check(r.Migrate(ctx))
	launcher, err := job.NewLauncher(job.Config{
		Repository: r.Ports(), Executor: step.NewSimpleStepExecutor(r, db.Name(), nil),
	})
	testexample.Check(err)

	greet, err := step.NewTasklet(step.TaskletConfig{
		Name: "greet", Database: db,
		Assemble: func(_ context.Context, run *model.StepRun) (core.Tasklet, error) {
			return core.TaskletFunc(func(context.Context, *core.StepContribution) error {
				name, _ := run.Data.Job.Params.Get("name")
				fmt.Println("Hello,", name.Value)
				return nil
			}), nil
		},
	})
	testexample.Check(err)
	greeting := &model.Job{
		Name: "greeting", Restartable: true,
		Parameters: []core.ParameterSpec{{Name: "name", Type: core.TypeString, Required: true, Identifying: true}},
		Flow:       model.Flow{Elements: []model.Element{&model.StepElement{Step: greet}}},
	}

	params, err := job.ValidateParameters(greeting.Parameters, map[string]string{"name": "Ada"})
	testexample.Check(err)
	execution, err := launcher.Run(ctx, greeting, params, nil)
	testexample.Check(err)
	fmt.Println(execution.Status)
	_, err = launcher.Run(ctx, greeting, params, nil)
	fmt.Println(err)
	// Output:
	// Hello, Ada
	// COMPLETED
	// job greeting is already complete with these parameters (execution 1)
}

// All errors in the parameters are reported at once.
func ExampleValidateParameters() {
	specs := []core.ParameterSpec{
		{Name: "day", Type: core.TypeDate, Required: true, Identifying: true},
		{Name: "limit", Type: core.TypeInt, Min: int64(1), Default: int64(100)},
	}
	_, err := job.ValidateParameters(specs, map[string]string{"limit": "0"})
	fmt.Println(err)
	params, err := job.ValidateParameters(specs, map[string]string{"day": "2026-11-20"})
	limit, _ := params.Get("limit")
	fmt.Println(limit.Value, err)
	// Output:
	// parameter day: it is required (type date)
	// parameter limit: 0 is less than 1
	// 100 <nil>
}
