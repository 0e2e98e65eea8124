package route_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/route"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func ExampleNew() {
	type Order struct{ ID, Total int }
	dir, done := testexample.Dir()
	defer done()
	to := func(name string) registry.Nested {
		return registry.Nested{Component: csv.Components()[1], Config: &csv.WriterConfig{Path: filepath.Join(dir, name)}}
	}
	writer, err := route.New(context.Background(), route.Config{To: []route.Way{
		{When: registry.Expression{Text: "item.total > 100"}, Writer: to("large.csv")},
		{Writer: to("small.csv")},
	}}, itemtest.Use(item.TypeOf[Order]("order"), core.Attempt{Exclusive: true}))
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Write(writer, Order{1, 5}, Order{2, 500})
	for _, name := range []string{"large.csv", "small.csv"} {
		fmt.Printf("%s: %s", name, testexample.Must(os.ReadFile(filepath.Join(dir, name))))
	}
	// Output:
	// large.csv: 2,500
	// small.csv: 1,5
}
