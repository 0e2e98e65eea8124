package compare_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/compare"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// The step fails, and reports the differences.
func ExampleComponents() {
	_, db, done := testexample.SQLite("create table old(id int, name text)", "create table new(id int, name text)",
		"insert into old values (1, 'Ada'), (2, 'Grace')", "insert into new values (2, 'Joan')")
	defer done()
	tasklet := testexample.Must(testcomponent.Make[core.Tasklet](compare.Components(), registry.KindTasklet, testcomponent.Settings{
		"left": testcomponent.Settings{"table": "old"}, "right": testcomponent.Settings{"table": "new"}, "key": []string{"id"}, "show": 5,
	}, registry.BuildContext{Databases: testcomponent.On{DB: db}}))
	fmt.Println(tasklet.Execute(context.Background(), &core.StepContribution{}))
	// Output: compare: the sides differ: 2 rows and 1, 0 equal, 1 differing, 1 only left, 0 only right; only left: id 1; id 2: name "Grace" and "Joan"
}
