//test:plain

package parquet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	pq "github.com/parquet-go/parquet-go"

	"github.com/surfin-batch/surfin/contrib/parquet"
	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// A file is there when the writer has finished.
func ExampleComponents() {
	dir, done := testexample.Dir()
	defer done()
	type Order struct {
		ID   int    `parquet:"id"`
		Name string `parquet:"name"`
	}
	path := filepath.Join(dir, "orders.parquet")
	use := itemtest.Use(item.TypeOf[Order]("order"), core.Attempt{Exclusive: true})
	w, err := testcomponent.Make[item.Writer](parquet.Components(), registry.KindWriter, testcomponent.Settings{"path": path}, use)
	testexample.Check(err)
	ctx, c := context.Background(), w.Component().(interface {
		item.Opener
		item.Preparer
		item.Releaser
		item.Finisher
		Stage(ctx context.Context) (bool, error)
	})
	testexample.Check(c.Open(ctx, nil))
	testexample.Check(w.Write(ctx, itemtest.Chunks([]Order{{1, "a"}, {2, "b"}})[0]))
	testexample.Check(c.Prepare(ctx))
	testexample.Check(c.Release(ctx))
	_, err = os.Stat(path)
	fmt.Println("published:", err == nil)

	testexample.Must(c.Stage(ctx))
	testexample.Check(c.Finish(ctx))
	rows, err := pq.ReadFile[Order](path)
	fmt.Println(rows, err)
	// Output:
	// published: false
	// [{1 a} {2 b}] <nil>
}
