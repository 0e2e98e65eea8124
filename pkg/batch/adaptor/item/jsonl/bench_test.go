package jsonl

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
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const benchRows = 50_000

type benchThing struct {
	ID     int64   `json:"id"`
	Name   string  `json:"name"`
	Amount float64 `json:"amount"`
	Note   *string `json:"note"`
}

func benchFile(b *testing.B) string {
	path := filepath.Join(b.TempDir(), "in.jsonl")
	f, err := os.Create(path)
	require.NoError(b, err)
	w := bufio.NewWriter(f)
	for i := range benchRows {
		fmt.Fprintf(w, `{"id":%d,"name":"customer number %06d","amount":%.2f,"note":null}`+"\n", i, i, float64(i)/3)
	}
	require.NoError(b, errors.Join(w.Flush(), f.Close()))
	b.ReportAllocs()
	return path
}

func perRow(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}

func BenchmarkBareRead(b *testing.B) {
	path := benchFile(b)
	for b.Loop() {
		f, err := os.Open(path)
		require.NoError(b, err)
		s := bufio.NewScanner(f)
		for s.Scan() {
			var item benchThing
			require.NoError(b, stdjson.Unmarshal(s.Bytes(), &item))
		}
		require.NoError(b, f.Close())
	}
	perRow(b)
}

func BenchmarkReadStruct(b *testing.B) { benchRead(b, core.ItemOf[benchThing]("")) }

func BenchmarkReadRows(b *testing.B) {
	s, err := row.NewSchema(row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String},
		row.Field{Name: "amount", Kind: row.Float}, row.Field{Name: "note", Kind: row.String, Nullable: true})
	require.NoError(b, err)
	benchRead(b, core.RowOf("", s))
}

func benchRead(b *testing.B, item core.ItemType) {
	path := benchFile(b)
	ctx := context.Background()
	for b.Loop() {
		r, err := NewReader(ReaderConfig{Path: path}, item)
		require.NoError(b, err)
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
}
