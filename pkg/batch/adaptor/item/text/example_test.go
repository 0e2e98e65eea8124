package text_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/text"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Customer is an item of the examples.
type Customer struct {
	ID   int64
	Name string
}

func places() map[string]text.Column {
	return map[string]text.Column{"id": {At: "1-5", Pad: "0"}, "name": {At: "6-12"}}
}

func ExampleNewReader() {
	path, done := testexample.File("in.txt", "00001Ada    \n00002Grace  \n")
	defer done()
	reader, err := text.NewReader(text.ReaderConfig{Path: path, Columns: places()}, item.TypeOf[Customer]("customer"))
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
	path := filepath.Join(dir, "out.txt")
	cfg := text.WriterConfig{Path: path, Columns: places(), Trailer: &text.Trailer{Begins: "END", Count: "4-8"}}
	writer, err := text.NewWriter(cfg, registry.BuildContext{In: item.TypeOf[Customer]("customer")})
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

func ExampleNewLinesReader() {
	path, done := testexample.File("in.txt", "one\ntwo\n")
	defer done()
	reader, err := text.NewLinesReader(text.LinesConfig{Path: path})
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
func ExampleReaderConfig_records() {
	path, done := testexample.File("in.txt", "H2026-11-20\nD0125{\nD0000N\nT000001245\n")
	defer done()
	two := 2
	reader, err := text.NewReader(text.ReaderConfig{Path: path, Records: map[string]text.RecordType{
		"H": {As: "header", Columns: map[string]text.Column{"day": {At: "2-11"}}},
		"D": {Columns: map[string]text.Column{"cost": {At: "2-6", Format: "zoned", Decimals: &two}}},
		"T": {As: "trailer", Sums: map[string]text.Column{"cost": {At: "2-10", Format: "text"}}},
	}}, item.TypeOf[Strike]("strike"))
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Print[Strike](reader)
	// Output:
	// {Day:2026-11-20 Cost:12.50}
	// {Day:2026-11-20 Cost:-0.05}
}
