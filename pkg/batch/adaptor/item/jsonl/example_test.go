package jsonl_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/jsonl"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Customer is an item of the examples.
type Customer struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

func ExampleNewReader() {
	path, done := testexample.File("in.jsonl", "{\"id\": 1, \"name\": \"Ada\"}\n{\"id\": 2, \"name\": \"Grace\"}\n")
	defer done()
	reader, err := jsonl.NewReader(jsonl.ReaderConfig{Path: path}, core.ItemOf[Customer]("customer"))
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
	path := filepath.Join(dir, "out.jsonl")
	writer, err := jsonl.NewWriter(jsonl.WriterConfig{Path: path}, registry.BuildContext{In: core.ItemOf[Customer]("customer")})
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
