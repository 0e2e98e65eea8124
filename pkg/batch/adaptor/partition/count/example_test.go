package count_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/count"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// So many parts; each knows its number, and how many there are.
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
