package query_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/query"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// One part per row; the fields of the struct name the values of the parts.
func ExampleNew() {
	_, db, done := testexample.SQLite("create table region(code text, rows int)", "insert into region values ('north', 3), ('south', 5)")
	defer done()
	type region struct {
		Name string
		Rows int64
	}
	p := testexample.Must(query.New(db, query.Config{
		SQL:  registry.SQL{Parts: []string{"select code as name, rows from region order by code"}},
		Item: item.TypeOf[region]("region"),
	}))
	for _, part := range testexample.Must(p.Partition(context.Background(), &core.View{})) {
		rows, _ := part.Context.Get("rows")
		fmt.Println(part.Name, rows)
	}
	// Output:
	// north 3
	// south 5
}
