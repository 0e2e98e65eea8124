package route_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/route"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func ExampleComponents() {
	type Order struct{ ID, Total int }
	dir, done := testexample.Dir()
	defer done()
	to := func(name string) registry.Nested {
		return testcomponent.Nested(csv.Components(), registry.KindWriter, testcomponent.Settings{"path": filepath.Join(dir, name)})
	}
	writer, err := testcomponent.Make[item.Writer](route.Components(), registry.KindWriter, testcomponent.Settings{"to": []testcomponent.Settings{
		{"when": registry.Expression{Text: "item.total > 100"}, "writer": to("large.csv")},
		{"writer": to("small.csv")},
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
