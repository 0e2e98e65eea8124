package waitfile_test

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/waitfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// A complete file is found at once; in a job file: wait_file: {path: in/a.csv, stable: 0s}.
func ExampleComponents() {
	path, done := testexample.File("a.csv", "id\n1\n")
	defer done()
	tasklet := testexample.Must(testcomponent.Make[core.Tasklet](waitfile.Components(), registry.KindTasklet, testcomponent.Settings{"path": path}, registry.BuildContext{}))
	c := &core.StepContribution{}
	fmt.Println(tasklet.Execute(context.Background(), c), c.Out["found"], c.Out["bytes"])
	// Output: <nil> true 5
}
