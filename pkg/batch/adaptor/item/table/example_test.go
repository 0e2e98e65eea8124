package table_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/table"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// A writer of records becomes one of Go structs through their item type. Write must run in the transaction
// that commits the chunk's position.
func ExampleNew() {
	_, db, done := testexample.SQLite("create table customer(id int primary key, name text)", "insert into customer values (1, 'Adda')")
	defer done()
	type Customer struct {
		ID   int64
		Name string
	}
	itemType := item.TypeOf[Customer]("customer")
	records, err := table.New(db, table.Config{Name: "customer", Mode: table.Upsert, Key: []string{"id"}}, itemType.Schema())
	if err != nil {
		fmt.Println(err)
		return
	}
	writer := testexample.Must(itemType.ToRecords(records))
	err = tx.NewManager(db).Do(context.Background(), tx.Attr{}, func(ctx context.Context) error {
		if err := records.Open(ctx, nil); err != nil {
			return err
		}
		return writer.Write(ctx, &item.Slice[Customer]{Items: []Customer{{1, "Ada"}, {2, "Grace"}}})
	})
	fmt.Println(err, testexample.Text(db, "select group_concat(id || ' ' || name, ', ') from customer"))
	// Output: <nil> 1 Ada, 2 Grace
}
