package json_test

import (
	"fmt"
	"os"
	"path/filepath"

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

func ExampleNewReader() {
	path, done := testexample.File("in.json", "[{\"id\": 1, \"name\": \"Ada\"}, {\"id\": 2, \"name\": \"Grace\"}]")
	defer done()
	reader, err := json.NewReader(json.ReaderConfig{Path: path}, item.TypeOf[Customer]("customer"))
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Print[Customer](reader)
	// Output:
	// {ID:1 Name:Ada}
	// {ID:2 Name:Grace}
}

func ExampleNewWriter() {
	dir, done := testexample.Dir()
	defer done()
	path := filepath.Join(dir, "out.json")
	writer, err := json.NewWriter(json.WriterConfig{Path: path}, registry.BuildContext{In: item.TypeOf[Customer]("customer")})
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

func ExampleNewLinesReader() {
	path, done := testexample.File("in.jsonl", "{\"id\": 1, \"name\": \"Ada\"}\n{\"id\": 2, \"name\": \"Grace\"}\n")
	defer done()
	reader, err := json.NewLinesReader(json.LinesReaderConfig{Path: path}, item.TypeOf[Customer]("customer"))
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Print[Customer](reader)
	// Output:
	// {ID:1 Name:Ada}
	// {ID:2 Name:Grace}
}

func ExampleNewLinesWriter() {
	dir, done := testexample.Dir()
	defer done()
	path := filepath.Join(dir, "out.jsonl")
	writer, err := json.NewLinesWriter(json.WriterConfig{Path: path}, registry.BuildContext{In: item.TypeOf[Customer]("customer")})
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
