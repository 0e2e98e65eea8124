package query_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/query"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// One part per row; the fields of the struct name the values of the parts.
func ExampleComponents() {
	_, db, done := testexample.SQLite("create table region(code text, rows int)", "insert into region values ('north', 3), ('south', 5)")
	defer done()
	type region struct {
		Name string
		Rows int64
	}
	p := testexample.Must(testcomponent.Make[core.Partitioner](query.Components(), registry.KindPartitioner, testcomponent.Settings{
		"sql":  registry.SQL{Parts: []string{"select code as name, rows from region order by code"}},
		"item": item.TypeOf[region]("region"),
	}, registry.BuildContext{Databases: testcomponent.On{DB: db}}))
	for _, part := range testexample.Must(p.Partition(context.Background(), &core.View{})) {
		rows, _ := part.Context.Get("rows")
		fmt.Println(part.Name, rows)
	}
	// Output:
	// north 3
	// south 5
}
