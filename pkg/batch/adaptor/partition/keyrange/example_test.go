package keyrange_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/keyrange"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// In a job file: `partition: {by: {range: {table: customer, key: id, parts: 3}}}`.
func ExampleNew() {
	_, db, done := testexample.SQLite("create table customer(id int primary key)", "insert into customer values (11), (20), (40)")
	defer done()
	p := testexample.Must(keyrange.New(db, keyrange.Config{Table: "customer", Key: "id", Parts: 3}))
	for _, part := range testexample.Must(p.Partition(context.Background(), &core.View{})) {
		fmt.Println(part.Index, part.Name)
	}
	// Output:
	// 0 11..20
	// 1 21..30
	// 2 31..40
}
