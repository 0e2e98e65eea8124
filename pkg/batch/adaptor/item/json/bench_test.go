package json

import (
	"bufio"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jsonfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const benchRows = 50_000

type benchThing struct {
	ID     int64   `json:"id"`
	Name   string  `json:"name"`
	Amount float64 `json:"amount"`
	Note   *string `json:"note"`
}

func benchRow(t require.TestingT) item.Type {
	s, err := row.NewSchema(row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String},
		row.Field{Name: "amount", Kind: row.Float}, row.Field{Name: "note", Kind: row.String, Nullable: true})
	require.NoError(t, err)
	return item.RowOf("", s)
}

func (f family) benchFile(b *testing.B) string {
	path := filepath.Join(b.TempDir(), "in")
	out, err := os.Create(path)
	require.NoError(b, err)
	w := bufio.NewWriter(out)
	for i := range benchRows {
		if f.name == "json" {
			fmt.Fprintf(w, "%c\n", "[,"[min(i, 1)])
		} else if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, `{"id":%d,"name":"customer number %06d","amount":%.2f,"note":null}`, i, i, float64(i)/3)
	}
	if f.name == "json" {
		fmt.Fprint(w, "\n]")
	}
	fmt.Fprintln(w)
	require.NoError(b, errors.Join(w.Flush(), out.Close()))
	b.ReportAllocs()
	return path
}

func perRow(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}

func BenchmarkBareRead(b *testing.B) {
	b.Run("json", func(b *testing.B) {
		bareRead(b, families()[0].benchFile(b), func(f *os.File) {
			d := stdjson.NewDecoder(f)
			_, err := d.Token()
			require.NoError(b, err)
			for d.More() {
				var item benchThing
				require.NoError(b, d.Decode(&item))
			}
		})
	})
	b.Run("jsonl", func(b *testing.B) {
		bareRead(b, families()[1].benchFile(b), func(f *os.File) {
			s := bufio.NewScanner(f)
			for s.Scan() {
				var item benchThing
				require.NoError(b, stdjson.Unmarshal(s.Bytes(), &item))
			}
		})
	})
}

func bareRead(b *testing.B, path string, read func(*os.File)) {
	for b.Loop() {
		f, err := os.Open(path)
		require.NoError(b, err)
		read(f)
		require.NoError(b, f.Close())
	}
	perRow(b)
}

func BenchmarkReadStruct(b *testing.B) { benchRead(b, item.TypeOf[benchThing]("")) }
func BenchmarkReadRows(b *testing.B)   { benchRead(b, benchRow(b)) }

func benchRead(b *testing.B, itemType item.Type) {
	for i, f := range families() {
		b.Run(f.name, func(b *testing.B) {
			path := f.benchFile(b)
			ctx := context.Background()
			component := Components()[2*i]
			for b.Loop() {
				made, err := component.New(ctx, f.config(path, itemType, 0), registry.BuildContext{Out: itemType})
				require.NoError(b, err)
				r := made.(item.Reader)
				c := r.Component().(*jsonfile.Reader)
				require.NoError(b, c.Open(ctx, nil))
				items := r.NewItems(1000)
				for {
					items.Reset()
					if err := r.Fill(ctx, items, 1000); err != nil {
						require.ErrorIs(b, err, io.EOF)
						break
					}
				}
				require.NoError(b, c.Close(ctx))
			}
			perRow(b)
		})
	}
}
