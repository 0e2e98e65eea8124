package merge_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/merge"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func ExampleComponents() {
	dir, done := testexample.Dir()
	defer done()
	write := func(name, text string, of *row.Schema) registry.Nested {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			fmt.Println(err)
		}
		return testcomponent.Nested(csv.Components(), registry.KindReader, testcomponent.Settings{"path": path, "header": "exact", "item": item.RowOf("", of)})
	}
	order := testexample.Must(row.NewSchema(row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "customer", Kind: row.Int}))
	customer := testexample.Must(row.NewSchema(row.Field{Name: "customer", Kind: row.Int}, row.Field{Name: "name", Kind: row.String}))
	reader, err := testcomponent.Make[item.Reader](merge.Components(), registry.KindReader, testcomponent.Settings{
		"left": write("orders.csv", "id,customer\n1,7\n2,8\n", order), "right": write("customers.csv", "customer,name\n8,Ada\n", customer), "key": []string{"customer"}, "kind": "left",
	}, registry.BuildContext{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range testexample.Read[item.Row](reader) {
		fmt.Println(r.At(0), r.At(1), r.At(2))
	}
	// Output:
	// 1 7 null
	// 2 8 Ada
}
