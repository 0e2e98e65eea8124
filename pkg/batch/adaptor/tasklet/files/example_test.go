package filetask_test

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"
	filetask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/files"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// A file moves into a folder, which is made; in a job file: files: {move: in/a.csv, to: done}.
func ExampleComponents() {
	path, done := testexample.File("a.csv", "id\n1\n")
	defer done()
	tasklet := testexample.Must(testcomponent.Make[core.Tasklet](filetask.Components(), registry.KindTasklet, testcomponent.Settings{"move": path, "to": filepath.Join(filepath.Dir(path), "done")}, registry.BuildContext{}))
	c := &core.StepContribution{}
	fmt.Println(tasklet.Execute(context.Background(), c), c.Out["files"], c.Out["bytes"])
	// Output: <nil> 1 5
}
