package text_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/text"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type keys = testcomponent.Settings

// Customer is an item of the examples.
type Customer struct {
	ID   int64
	Name string
}

func places() keys {
	return keys{"id": keys{"at": "1-5", "pad": "0"}, "name": keys{"at": "6-12"}}
}

func ExampleComponents_reader() {
	path, done := testexample.File("in.txt", "00001Ada    \n00002Grace  \n")
	defer done()
	reader, err := testcomponent.Make[item.Reader](testcomponent.Named(text.Components(), "fixed"), registry.KindReader, keys{"path": path, "columns": places()}, registry.BuildContext{Out: item.TypeOf[Customer]("customer")})
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
	path := filepath.Join(dir, "out.txt")
	writer, err := testcomponent.Make[item.Writer](testcomponent.Named(text.Components(), "fixed"), registry.KindWriter, keys{
		"path": path, "columns": places(), "trailer": keys{"begins": "END", "count": "4-8"},
	}, registry.BuildContext{In: item.TypeOf[Customer]("customer")})
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Write(writer, Customer{1, "Ada"}, Customer{2, "Grace"})
	fmt.Print(strings.ReplaceAll(string(testexample.Must(os.ReadFile(path))), " ", "."))
	// Output:
	// 00001Ada....
	// 00002Grace..
	// END00002
}

func ExampleComponents_linesReader() {
	path, done := testexample.File("in.txt", "one\ntwo\n")
	defer done()
	reader, err := testcomponent.Make[item.Reader](testcomponent.Named(text.Components(), "lines"), registry.KindReader, keys{"path": path}, registry.BuildContext{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	items := reader.NewItems(2)
	err = errors.Join(reader.Component().(item.Opener).Open(ctx, nil), reader.Fill(ctx, items, 2), reader.Component().(item.Closer).Close(ctx))
	fmt.Println(items.At(0).(item.Row).Values()[0], items.At(1).(item.Row).Values()[0], err)
	// Output: one two <nil>
}

// Strike is a detail of the example below: the day comes from the header above it.
type Strike struct {
	Day  string
	Cost row.Decimal
}

// A file with several record types: H, D and T.
func ExampleComponents_records() {
	path, done := testexample.File("in.txt", "H2026-11-20\nD0125{\nD0000N\nT000001245\n")
	defer done()
	two := 2
	reader, err := testcomponent.Make[item.Reader](testcomponent.Named(text.Components(), "fixed"), registry.KindReader, keys{"path": path, "records": keys{
		"H": keys{"as": "header", "columns": keys{"day": keys{"at": "2-11"}}},
		"D": keys{"columns": keys{"cost": keys{"at": "2-6", "format": "zoned", "decimals": &two}}},
		"T": keys{"as": "trailer", "sums": keys{"cost": keys{"at": "2-10", "format": "text"}}},
	}}, registry.BuildContext{Out: item.TypeOf[Strike]("strike")})
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Print[Strike](reader)
	// Output:
	// {Day:2026-11-20 Cost:12.50}
	// {Day:2026-11-20 Cost:-0.05}
}
