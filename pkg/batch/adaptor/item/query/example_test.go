package query_test

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/query"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// The rows come in the order of the key, page by page; a restart continues after the last key. A ${...} of a
// job file is a bind variable.
func ExampleComponents() {
	_, db, done := testexample.SQLite("create table customer(id int primary key, name text)",
		"insert into customer values (3, 'Joan'), (1, 'Ada'), (2, 'Grace')")
	defer done()
	type Customer struct {
		ID   int64
		Name *string
	}
	reader, err := testcomponent.Make[item.Reader](query.Components(), registry.KindReader, testcomponent.Settings{
		"sql": registry.SQL{Parts: []string{"select id, name from customer where id < ", ""}, Args: []any{int64(3)}},
		"key": []string{"id"}, "fetch": 100,
	}, registry.BuildContext{Databases: testcomponent.On{DB: db}, Out: item.TypeOf[Customer]("customer")})
	if err != nil {
		fmt.Println(err)
		return
	}
	items := testexample.Read[Customer](reader)
	for _, c := range items {
		fmt.Println(c.ID, *c.Name)
	}
	// Output:
	// 1 Ada
	// 2 Grace
}
