package shell_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/shell"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// A script has the values in env; its ${...} belongs to the shell.
func ExampleNew() {
	tasklet, err := shell.New(shell.Config{
		Script: `echo "${GREETING:-Hello}, $NAME"`,
		Env:    map[string]string{"NAME": "Ada"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := &core.StepContribution{}
	fmt.Println(tasklet.Execute(context.Background(), c), c.Out["exit_code"], c.Out["stdout"])
	// Output: <nil> 0 Hello, Ada
}
