package files_test

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/files"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// One part per file, by name.
func ExampleComponents() {
	file, done := testexample.File("north.csv", "id\n1\n")
	defer done()
	p := testexample.Must(testcomponent.Make[core.Partitioner](files.Components(), registry.KindPartitioner, testcomponent.Settings{"glob": filepath.Join(filepath.Dir(file), "*.csv")}, registry.BuildContext{}))
	for _, part := range testexample.Must(p.Partition(context.Background(), &core.View{})) {
		path, _ := part.Context.Get("path")
		fmt.Println(part.Name, path == file)
	}
	// Output: north.csv true
}
