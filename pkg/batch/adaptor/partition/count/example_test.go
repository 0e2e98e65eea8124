package count_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/count"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Each part has its number, and the number of parts.
func ExampleNew() {
	p := testexample.Must(count.New(count.Config{Parts: 2}))
	for _, part := range testexample.Must(p.Partition(context.Background(), &core.View{})) {
		of, _ := part.Context.Get("count")
		fmt.Println(part.Index, "of", of)
	}
	// Output:
	// 0 of 2
	// 1 of 2
}
