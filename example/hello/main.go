// Command hello greets. It imports pkg/batch and pkg/batch/cli only.
package main

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/cli"
)

func main() {
	cli.Main(batch.Tasklet("hello", func() batch.TaskletFunc {
		return func(_ context.Context, c *batch.StepContribution) error {
			name, err := c.Params.String("name")
			fmt.Printf("Hello, %s!\n", name)
			return err
		}
	}))
}
