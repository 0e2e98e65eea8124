package group_test

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/group"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func ExampleComponents() {
	path, done := testexample.File("sales.csv", "shop,amount\nnorth,3\nnorth,4\nsouth,5\n")
	defer done()
	sales := testexample.Must(row.NewSchema(row.Field{Name: "shop", Kind: row.String}, row.Field{Name: "amount", Kind: row.Int}))
	reader, err := testcomponent.Make[item.Reader](group.Components(), registry.KindReader, testcomponent.Settings{
		"reader": testcomponent.Nested(csv.Components(), registry.KindReader, testcomponent.Settings{"path": path, "header": "exact", "item": item.RowOf("sale", sales)}),
		"key":    []string{"shop"},
		"fields": registry.Expressions{{Name: "total", Expression: registry.Expression{Text: "sum(item.amount)"}}},
	}, registry.BuildContext{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range testexample.Read[item.Row](reader) {
		fmt.Println(r.At(0), r.At(1))
	}
	// Output:
	// north 7
	// south 5
}
