package files_test

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/files"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func ExampleNew() {
	path, done := testexample.File("monday.csv", "id\n1\n2\n")
	defer done()
	ids := testexample.Must(row.NewSchema(row.Field{Name: "id", Kind: row.Int}))
	reader, err := files.New(context.Background(), files.Config{
		Glob:   filepath.Join(filepath.Dir(path), "*.csv"),
		Reader: registry.Nested{Component: csv.Components()[0], Config: &csv.ReaderConfig{Header: csv.HeaderExact, Item: item.RowOf("", ids)}},
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
