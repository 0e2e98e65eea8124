package shell_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/shell"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// A script has the values in env; its ${...} belongs to the shell.
func ExampleComponents() {
	tasklet, err := testcomponent.Make[core.Tasklet](shell.Components(), registry.KindTasklet, testcomponent.Settings{
		"script": `echo "${GREETING:-Hello}, $NAME"`,
		"env":    map[string]string{"NAME": "Ada"},
	}, registry.BuildContext{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := &core.StepContribution{}
	fmt.Println(tasklet.Execute(context.Background(), c), c.Out["exit_code"], c.Out["stdout"])
	// Output: <nil> 0 Hello, Ada
}
