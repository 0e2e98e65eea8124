package mapping_test

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/mapping"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func ExampleNew() {
	type Invoice struct {
		ID, Total int64
	}
	processor, err := mapping.New(mapping.Config{Only: true, Fields: registry.Expressions{{Name: "euros", Expression: registry.Expression{Text: "item.total / 100"}}}}, item.TypeOf[Invoice]("invoice"))
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Process(processor, Invoice{1, 100}, Invoice{2, 0})
	// Output:
	// euros=1
	// euros=0
}
