package csv_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Customer is an item of the examples.
type Customer struct {
	ID   int64
	Name string
}

func ExampleNewReader() {
	path, done := testexample.File("in.csv", "id,name\n1,Ada\n2,Grace\n")
	defer done()
	reader, err := csv.NewReader(csv.ReaderConfig{Path: path, Header: csv.HeaderExact}, item.TypeOf[Customer]("customer"))
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
	path := filepath.Join(dir, "out.csv")
	writer, err := csv.NewWriter(csv.WriterConfig{Path: path, Header: true}, registry.BuildContext{In: item.TypeOf[Customer]("customer")})
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Write(writer, Customer{1, "Ada"}, Customer{2, "Grace"})
	fmt.Print(string(testexample.Must(os.ReadFile(path))))
	// Output:
	// id,name
	// 1,Ada
	// 2,Grace
}
