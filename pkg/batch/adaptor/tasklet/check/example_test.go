package check_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/check"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// The step fails, and reports which rows break which rule.
func ExampleComponents() {
	_, db, done := testexample.SQLite("create table customer(id int, country text)", "insert into customer values (1, 'DE'), (1, 'XX')")
	defer done()
	tasklet := testexample.Must(testcomponent.Make[core.Tasklet](check.Components(), registry.KindTasklet, testcomponent.Settings{
		"table": "customer", "unique": []string{"id"}, "not_null": []string{"id"},
		"accepted_values": map[string][]string{"country": {"DE", "FR"}}, "show": 1,
	}, registry.BuildContext{Databases: testcomponent.On{DB: db}}))
	fmt.Println(tasklet.Execute(context.Background(), &core.StepContribution{}))
	// Output: check: 2 of 3 checks failed: unique id: 2 rows, such as {"id":1,"country":"DE"}; accepted_values country: 1 row, such as {"id":1,"country":"XX"}
}
