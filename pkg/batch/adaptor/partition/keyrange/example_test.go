package keyrange_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/keyrange"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// In a job file: `partition: {by: {range: {table: customer, key: id, parts: 3}}}`.
func ExampleComponents() {
	_, db, done := testexample.SQLite("create table customer(id int primary key)", "insert into customer values (11), (20), (40)")
	defer done()
	p := testexample.Must(testcomponent.Make[core.Partitioner](keyrange.Components(), registry.KindPartitioner, testcomponent.Settings{"table": "customer", "key": "id", "parts": 3}, registry.BuildContext{Databases: testcomponent.On{DB: db}}))
	for _, part := range testexample.Must(p.Partition(context.Background(), &core.View{})) {
		fmt.Println(part.Index, part.Name)
	}
	// Output:
	// 0 11..11
	// 1 12..20
	// 2 21..40
}
