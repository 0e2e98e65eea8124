package json_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/json"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Customer is an item of the examples.
type Customer struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

func ExampleComponents_reader() {
	path, done := testexample.File("in.json", "[{\"id\": 1, \"name\": \"Ada\"}, {\"id\": 2, \"name\": \"Grace\"}]")
	defer done()
	reader, err := testcomponent.Make[item.Reader](testcomponent.Named(json.Components(), "json"), registry.KindReader, testcomponent.Settings{"path": path}, registry.BuildContext{Out: item.TypeOf[Customer]("customer")})
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Print[Customer](reader)
	// Output:
	// {ID:1 Name:Ada}
	// {ID:2 Name:Grace}
}

func ExampleComponents_writer() {
	dir, done := testexample.Dir()
	defer done()
	path := filepath.Join(dir, "out.json")
	writer, err := testcomponent.Make[item.Writer](testcomponent.Named(json.Components(), "json"), registry.KindWriter, testcomponent.Settings{"path": path}, registry.BuildContext{In: item.TypeOf[Customer]("customer")})
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Write(writer, Customer{1, "Ada"}, Customer{2, "Grace"})
	fmt.Print(string(testexample.Must(os.ReadFile(path))))
	// Output:
	// [
	// {"id":1,"name":"Ada"},
	// {"id":2,"name":"Grace"}
	// ]
}

func ExampleComponents_linesReader() {
	path, done := testexample.File("in.jsonl", "{\"id\": 1, \"name\": \"Ada\"}\n{\"id\": 2, \"name\": \"Grace\"}\n")
	defer done()
	reader, err := testcomponent.Make[item.Reader](testcomponent.Named(json.Components(), "jsonl"), registry.KindReader, testcomponent.Settings{"path": path}, registry.BuildContext{Out: item.TypeOf[Customer]("customer")})
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Print[Customer](reader)
	// Output:
	// {ID:1 Name:Ada}
	// {ID:2 Name:Grace}
}

func ExampleComponents_linesWriter() {
	dir, done := testexample.Dir()
	defer done()
	path := filepath.Join(dir, "out.jsonl")
	writer, err := testcomponent.Make[item.Writer](testcomponent.Named(json.Components(), "jsonl"), registry.KindWriter, testcomponent.Settings{"path": path}, registry.BuildContext{In: item.TypeOf[Customer]("customer")})
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Write(writer, Customer{1, "Ada"}, Customer{2, "Grace"})
	fmt.Print(string(testexample.Must(os.ReadFile(path))))
	// Output:
	// {"id":1,"name":"Ada"}
	// {"id":2,"name":"Grace"}
}
