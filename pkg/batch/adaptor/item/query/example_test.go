package query_test

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/query"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// The rows come in the order of the key, page by page; a restart continues after the last key. A ${...} of a
// job file is a bind variable.
func ExampleNew() {
	_, db, done := testexample.SQLite("create table customer(id int primary key, name text)",
		"insert into customer values (3, 'Joan'), (1, 'Ada'), (2, 'Grace')")
	defer done()
	type Customer struct {
		ID   int64
		Name *string
	}
	item := item.TypeOf[Customer]("customer")
	records, err := query.New(db, query.Config{
		SQL: registry.SQL{Parts: []string{"select id, name from customer where id < ", ""}, Args: []any{int64(3)}},
		Key: []string{"id"}, Fetch: 100,
	}, item.Schema())
	if err != nil {
		fmt.Println(err)
		return
	}
	reader := testexample.Must(item.FromRecords(records))
	items := testexample.Read[Customer](reader)
	for _, c := range items {
		fmt.Println(c.ID, *c.Name)
	}
	// Output:
	// 1 Ada
	// 2 Grace
}
