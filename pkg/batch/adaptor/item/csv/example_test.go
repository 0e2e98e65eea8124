package csv_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/testcomponent"
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

func ExampleComponents_reader() {
	path, done := testexample.File("in.csv", "id,name\n1,Ada\n2,Grace\n")
	defer done()
	reader, err := testcomponent.Make[item.Reader](csv.Components(), registry.KindReader, testcomponent.Settings{"path": path, "header": "exact"}, registry.BuildContext{Out: item.TypeOf[Customer]("customer")})
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
	path := filepath.Join(dir, "out.csv")
	writer, err := testcomponent.Make[item.Writer](csv.Components(), registry.KindWriter, testcomponent.Settings{"path": path, "header": true}, registry.BuildContext{In: item.TypeOf[Customer]("customer")})
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

// A report: lines around the records, names in another case, a null marker, and records with missing fields.
func ExampleComponents_report() {
	path, done := testexample.File("in.csv", "Report of 2026-11-20\nID; Name ;x\n1;'O\\'Hara';a\n2;NA\nTotal;2\n")
	defer done()
	type person struct {
		ID   int64
		Name *string
	}
	reader, err := testcomponent.Make[item.Reader](csv.Components(), registry.KindReader, testcomponent.Settings{
		"path": path, "skip_lines": 1, "footer_lines": 1, "header": "loose", "delimiter": ";", "quote": "'", "escape": `\`,
		"nulls": []string{"NA"}, "short": "null",
	}, registry.BuildContext{Out: item.TypeOf[person]("person")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range testexample.Read[person](reader) {
		if p.Name != nil {
			fmt.Println(p.ID, *p.Name)
		} else {
			fmt.Println(p.ID, "no name")
		}
	}
	// Output:
	// 1 O'Hara
	// 2 no name
}

// An existing file is appended to, in the form that another program reads.
func ExampleComponents_append() {
	path, done := testexample.File("out.csv", "id;name\n1;'Ada'\n")
	defer done()
	writer, err := testcomponent.Make[item.Writer](csv.Components(), registry.KindWriter, testcomponent.Settings{
		"path": path, "append": true, "header": true, "delimiter": ";", "quote": "'", "escape": `\`,
	}, registry.BuildContext{In: item.TypeOf[Customer]("customer")})
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Write(writer, Customer{2, "O'Hara"}, Customer{3, "Grace"})
	fmt.Print(string(testexample.Must(os.ReadFile(path))))
	// Output:
	// id;name
	// 1;'Ada'
	// 2;'O\'Hara'
	// 3;Grace
}
