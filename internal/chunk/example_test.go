package chunk_test

import (
	"context"
	"fmt"
	"io"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// words reads a few words.
type words struct{ left []string }

func (w *words) Read(context.Context) (string, error) {
	if len(w.left) == 0 {
		return "", io.EOF
	}
	word := w.left[0]
	w.left = w.left[1:]
	return word, nil
}

// printer writes to the output.
type printer struct{}

func (printer) Write(_ context.Context, list []string) error {
	fmt.Println(list)
	return nil
}

// A chunk step that is made without a job file. Its parts are made for each execution.
func ExampleChunkStep() {
	_, db, done := testexample.SQLite()
	defer done()
	var step *chunk.ChunkStep
	step, err := chunk.New(chunk.Config{
		Name: "load", Size: 2, Database: db,
		Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
			return chunk.Parts{
				Reader:  item.EraseReader[string](&words{left: []string{"a", "b", "c"}}),
				Writers: []item.Writer{item.EraseWriter[string](printer{})},
			}, nil
		},
	})
	fmt.Println(step.Name(), step.Kind(), err)
	// Output: load chunk <nil>
}
