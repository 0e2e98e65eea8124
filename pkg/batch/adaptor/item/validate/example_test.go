package validate_test

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/validate"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func ExampleComponents() {
	type Invoice struct {
		ID, Total int64
	}
	processor, err := testcomponent.Make[item.Processor](validate.Components(), registry.KindProcessor, testcomponent.Settings{
		"rules": registry.Expressions{{Name: "positive", Expression: registry.Expression{Text: "item.total > 0"}}},
	}, registry.BuildContext{In: item.TypeOf[Invoice]("invoice")})
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Process(processor, Invoice{1, 100}, Invoice{2, 0})
	// Output:
	// {ID:1 Total:100}
	// validate: rule positive is broken: `item.total > 0`, with item.total = 0
}
