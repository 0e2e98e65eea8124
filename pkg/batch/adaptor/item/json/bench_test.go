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
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const benchRows = 50_000

func benchFile(b *testing.B) string {
	path := filepath.Join(b.TempDir(), "in.json")
	f, err := os.Create(path)
	require.NoError(b, err)
	w := bufio.NewWriter(f)
	for i := range benchRows {
		fmt.Fprintf(w, "%c\n"+`{"id":%d,"name":"customer number %06d"}`, "[,"[min(i, 1)], i, i)
	}
	_, _ = w.WriteString("\n]\n")
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
		d := stdjson.NewDecoder(f)
		_, err = d.Token()
		require.NoError(b, err)
		for d.More() {
			var item thing
			require.NoError(b, d.Decode(&item))
		}
		require.NoError(b, f.Close())
	}
	perRow(b)
}

func BenchmarkReadStruct(b *testing.B) { benchRead(b, core.ItemOf[thing]("")) }
func BenchmarkReadRows(b *testing.B)   { benchRead(b, rows(b)) }

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
