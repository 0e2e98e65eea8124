package migration_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/migration"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Migrations inside the application; an embed.FS is one.
func ExampleComponents() {
	provider, db, done := testexample.SQLite()
	defer done()
	source := migration.Source{Name: "shop", FS: fstest.MapFS{
		"1_customer.up.sql":   {Data: []byte("create table customer(id int primary key)")},
		"1_customer.down.sql": {Data: []byte("drop table customer")},
	}}
	tasklet, err := testcomponent.Make[core.Tasklet](migration.Components([]migration.Source{source}), registry.KindTasklet, testcomponent.Settings{"source": "shop"}, registry.BuildContext{Databases: provider})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := &core.StepContribution{}
	fmt.Println(tasklet.Execute(context.Background(), c), testexample.Text(db, "select count(*) from customer"))
	// Output: <nil> 0
}
