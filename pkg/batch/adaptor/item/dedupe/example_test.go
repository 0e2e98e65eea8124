//test:plain

package dedupe_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/dedupe"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// A chunk that is rolled back has passed nothing.
func ExampleComponents() {
	provider, db, done := testexample.SQLite()
	defer done()
	type Order struct{ ID, Total int }
	b := itemtest.Use(item.TypeOf[Order]("order"), core.Attempt{})
	b.Databases = provider
	processor, err := testcomponent.Make[item.Processor](dedupe.Components(), registry.KindProcessor, testcomponent.Settings{"key": []string{"id"}}, b)
	if err != nil {
		fmt.Println(err)
		return
	}
	cell := processor.NewCell().(*item.Cell[Order])
	_, advance, err := processor.Chain(cell)
	testexample.Check(err)
	chunk := func(failure error, orders ...Order) {
		fmt.Println(tx.NewManager(db).Do(context.Background(), tx.Attr{}, func(ctx context.Context) error {
			for _, o := range orders {
				cell.Item = o
				fmt.Println(o.ID, o.Total, advance(ctx))
			}
			return failure
		}))
	}
	chunk(errors.New("the disk is full"), Order{1, 10})
	chunk(nil, Order{1, 10}, Order{2, 20}, Order{1, 30})
	// Output:
	// 1 10 <nil>
	// the disk is full
	// 1 10 <nil>
	// 2 20 <nil>
	// 1 30 item filtered
	// <nil>
}
