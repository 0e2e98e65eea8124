package table_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/table"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Write must run in the transaction that commits the chunk's position.
func ExampleComponents() {
	_, db, done := testexample.SQLite("create table customer(id int primary key, name text)", "insert into customer values (1, 'Adda')")
	defer done()
	type Customer struct {
		ID   int64
		Name string
	}
	writer, err := testcomponent.Make[item.Writer](table.Components(), registry.KindWriter, testcomponent.Settings{
		"name": "customer", "mode": "upsert", "key": []string{"id"},
	}, registry.BuildContext{Databases: testcomponent.On{DB: db}, In: item.TypeOf[Customer]("customer")})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = tx.NewManager(db).Do(context.Background(), tx.Attr{}, func(ctx context.Context) error {
		if err := writer.Component().(item.Opener).Open(ctx, nil); err != nil {
			return err
		}
		return writer.Write(ctx, &item.Slice[Customer]{Items: []Customer{{1, "Ada"}, {2, "Grace"}}})
	})
	fmt.Println(err, testexample.Text(db, "select group_concat(id || ' ' || name, ', ') from customer"))
	// Output: <nil> 1 Ada, 2 Grace
}
