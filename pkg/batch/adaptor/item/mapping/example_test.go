package mapping_test

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/mapping"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func ExampleComponents() {
	type Invoice struct {
		ID, Total int64
	}
	processor, err := testcomponent.Make[item.Processor](mapping.Components(), registry.KindProcessor, testcomponent.Settings{
		"only": true, "fields": registry.Expressions{{Name: "euros", Expression: registry.Expression{Text: "item.total / 100"}}},
	}, registry.BuildContext{In: item.TypeOf[Invoice]("invoice")})
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Process(processor, Invoice{1, 100}, Invoice{2, 0})
	// Output:
	// euros=1
	// euros=0
}
