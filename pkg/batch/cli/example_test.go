package cli_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/cli"
)

// The surfin command with one more component: this is all that main does.
func ExampleMain() {
	main := func() {
		cli.Main(batch.Tasklet("hello", func() batch.TaskletFunc {
			return func(context.Context, *batch.StepContribution) error {
				_, err := fmt.Println("Hello!")
				return err
			}
		}))
	}
	_ = main
}
