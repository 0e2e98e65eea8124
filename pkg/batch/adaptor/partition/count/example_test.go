package count_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/count"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Each part has its number, and the number of parts.
func ExampleComponents() {
	p := testexample.Must(testcomponent.Make[core.Partitioner](count.Components(), registry.KindPartitioner, testcomponent.Settings{"parts": 2}, registry.BuildContext{}))
	for _, part := range testexample.Must(p.Partition(context.Background(), &core.View{})) {
		of, _ := part.Context.Get("count")
		fmt.Println(part.Index, "of", of)
	}
	// Output:
	// 0 of 2
	// 1 of 2
}
