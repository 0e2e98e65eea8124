package sqltask_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"

	sqltask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/sql"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// A query of one row: its columns are the step's results, in a job file ${steps.NAME.out.customers}.
func ExampleComponents() {
	_, db, done := testexample.SQLite("create table customer(id int)", "insert into customer values (1), (2)")
	defer done()
	out := testexample.Must(row.NewSchema(row.Field{Name: "customers", Kind: row.Int}))
	tasklet, err := testcomponent.Make[core.Tasklet](sqltask.Components(), registry.KindTasklet, testcomponent.Settings{
		"query": registry.SQL{Parts: []string{"select count(*) as customers from customer"}}, "out": item.RowOf("out", out),
	}, registry.BuildContext{Databases: testcomponent.On{DB: db}})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := &core.StepContribution{}
	fmt.Println(tasklet.Execute(context.Background(), c), c.Out)
	// Output: <nil> map[customers:2]
}
