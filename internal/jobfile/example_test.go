package jobfile_test

import (
	"errors"
	"fmt"
	"testing/fstest"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/testexample"
	sqltask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/sql"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// A job file is loaded with the components that it may use, and compiled with its dependencies.
func ExampleLoad() {
	path, remove := testexample.File("clean.yaml", `
job: clean
parameters:
  days: {type: int, default: 30}
flow:
- step: clean
  tasklet: {sql: "delete from log where age > ${params.days}"}
`)
	defer remove()
	provider, _, done := testexample.SQLite("create table log(age int)")
	defer done()
	components := testexample.Must(registry.New(sqltask.Components(), nil, nil))

	file, err := jobfile.Load(path, components)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(file.Name(), file.Steps(), file.Parameters()[0].Name)
	compiled, err := file.Compile(jobfile.Deps{Provider: provider, Registry: components})
	fmt.Println(compiled.Name, len(compiled.Flow.Elements), err)
	// Output:
	// clean [clean] days
	// clean 1 <nil>
}

// All mistakes are reported at once, with their positions in the file. The error's text also has excerpts and
// hints.
func ExampleLoad_wrong() {
	path, remove := testexample.File("clean.yaml", "job: clean\nflow:\n- step: clean\n  tasklet: {sqk: delete from log}\n  tiemout: 1m\n")
	defer remove()
	components := testexample.Must(registry.New(sqltask.Components(), nil, nil))
	_, err := jobfile.Load(path, components)
	var problems jobfile.Problems
	if errors.As(err, &problems) {
		for _, p := range problems {
			fmt.Printf("%d:%d: %s\n", p.Line, p.Col, p.Msg)
		}
	}
	// Output:
	// 4:13: there is no tasklet sqk
	// 5:3: unknown key "tiemout" in a step
}

// Job files that a program carries, such as in an embed.FS. The files of child jobs
// are in the same file system.
func ExampleLoadFS() {
	files := fstest.MapFS{
		"nightly.yaml":     {Data: []byte("job: nightly\nflow: [{job: clean, file: parts/clean.yaml}]\n")},
		"parts/clean.yaml": {Data: []byte("job: clean\nflow: [{step: clean, tasklet: {sql: delete from log}}]\n")},
	}
	components := testexample.Must(registry.New(sqltask.Components(), nil, nil))
	file, err := jobfile.LoadFS(files, "nightly.yaml", components)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(file.Name(), file.Steps())
	_, err = jobfile.FS(files, "daily.yaml").Load(components)
	fmt.Println(err)
	// Output:
	// nightly [clean]
	// job file: open daily.yaml: file does not exist
}

// A text that a program has made or received.
func ExampleBytes() {
	components := testexample.Must(registry.New(sqltask.Components(), nil, nil))
	_, err := jobfile.Bytes("upload 7", []byte("job: clean\nflow: [{step: clean, tasklet: {sqk: delete from log}}]\n")).Load(components)
	fmt.Println(err)
	// Output:
	// upload 7:2:32: there is no tasklet sqk
	//     2 | flow: [{step: clean, tasklet: {sqk: delete from log}}]
	//       |                                ^ did you mean sql? allowed: sql
}
