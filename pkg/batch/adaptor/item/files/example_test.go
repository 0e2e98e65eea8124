package files_test

import (
	"fmt"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/files"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func ExampleComponents() {
	path, done := testexample.File("monday.csv", "id\n1\n2\n")
	defer done()
	ids := testexample.Must(row.NewSchema(row.Field{Name: "id", Kind: row.Int}))
	reader, err := testcomponent.Make[item.Reader](files.Components(), registry.KindReader, testcomponent.Settings{
		"glob":   filepath.Join(filepath.Dir(path), "*.csv"),
		"reader": testcomponent.Nested(csv.Components(), registry.KindReader, testcomponent.Settings{"header": "exact", "item": item.RowOf("", ids)}),
	}, registry.BuildContext{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range testexample.Read[item.Row](reader) {
		fmt.Println(r.At(0))
	}
	// Output:
	// 1
	// 2
}
