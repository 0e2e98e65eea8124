package fail_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/fail"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// The tasklet fails its step with a message and an exit code; in a job file: fail: {message: ..., exit: ...}.
func ExampleComponents() {
	tasklet, err := testcomponent.Make[core.Tasklet](fail.Components(), registry.KindTasklet, testcomponent.Settings{"message": "no file today", "exit": "NO_DATA"}, registry.BuildContext{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := &core.StepContribution{}
	fmt.Println(tasklet.Execute(context.Background(), c), c.ExitCode)
	// Output: no file today NO_DATA
}
