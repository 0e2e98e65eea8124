//test:plain

package lookup_test

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/lookup"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func ExampleComponents() {
	provider, _, done := testexample.SQLite("create table rate (currency text primary key, rate real)", "insert into rate values ('USD', 0.5)")
	defer done()
	orders := testexample.Must(row.NewSchema(row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "currency", Kind: row.String}))
	rates := testexample.Must(row.NewSchema(row.Field{Name: "currency", Kind: row.String}, row.Field{Name: "rate", Kind: row.Float}))
	processor, err := testcomponent.Make[item.Processor](lookup.Components(), registry.KindProcessor, testcomponent.Settings{
		"table": "rate", "item": item.RowOf("rate", rates), "key": registry.Expressions{{Name: "currency", Expression: registry.Expression{Text: "item.currency"}}},
	}, registry.BuildContext{In: item.RowOf("order", orders), Databases: provider})
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Process(processor,
		row.New(orders, []row.Value{row.IntValue(1), row.StringValue("USD")}), row.New(orders, []row.Value{row.IntValue(2), row.StringValue("XXX")}))
	// Output:
	// id=1
	// currency=USD
	// rate=0.5
	// lookup: there is no row with currency = "XXX"
}
