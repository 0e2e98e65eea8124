package csv

import (
	"bufio"
	"context"
	stdcsv "encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const benchRows = 200_000

// benchFile has rows of 86 bytes, as workload W1.
func benchFile(b *testing.B) string {
	path := filepath.Join(b.TempDir(), "in.csv")
	f, err := os.Create(path)
	require.NoError(b, err)
	w := bufio.NewWriter(f)
	_, _ = w.WriteString("id,name,city,amount,note\n")
	for i := range benchRows {
		fmt.Fprintf(w, "%08d,customer number %06d,some city,%010.2f,a note of some length for the row here\n", i, i, float64(i)/3)
	}
	require.NoError(b, errors.Join(w.Flush(), f.Close()))
	b.ReportAllocs()
	return path
}

func benchItem(b *testing.B, typed bool) item.Type {
	kind := func(k row.Kind) row.Kind {
		if typed {
			return k
		}
		return row.String
	}
	s, err := row.NewSchema(
		row.Field{Name: "id", Kind: kind(row.Int)}, row.Field{Name: "name", Kind: row.String}, row.Field{Name: "city", Kind: row.String},
		row.Field{Name: "amount", Kind: kind(row.Float)}, row.Field{Name: "note", Kind: row.String})
	require.NoError(b, err)
	return item.RowOf("", s)
}

func perRow(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}

func BenchmarkBareRead(b *testing.B) {
	path := benchFile(b)
	for b.Loop() {
		f, err := os.Open(path)
		require.NoError(b, err)
		r := stdcsv.NewReader(bufio.NewReaderSize(f, 64<<10))
		r.ReuseRecord = true
		for {
			if _, err := r.Read(); err != nil {
				break
			}
		}
		require.NoError(b, f.Close())
	}
	perRow(b)
}

func BenchmarkBareReadParsed(b *testing.B) {
	path := benchFile(b)
	var ids int64
	var sum float64
	for b.Loop() {
		f, err := os.Open(path)
		require.NoError(b, err)
		r := stdcsv.NewReader(bufio.NewReaderSize(f, 64<<10))
		r.ReuseRecord = true
		_, _ = r.Read()
		for {
			record, err := r.Read()
			if err != nil {
				break
			}
			id, _ := strconv.ParseInt(record[0], 10, 64)
			x, _ := strconv.ParseFloat(record[3], 64)
			ids, sum = ids+id, sum+x
		}
		require.NoError(b, f.Close())
	}
	perRow(b)
}

func BenchmarkReadStrings(b *testing.B) { benchRead(b, benchItem(b, false)) }
func BenchmarkReadTyped(b *testing.B)   { benchRead(b, benchItem(b, true)) }
func BenchmarkReadStruct(b *testing.B) {
	benchRead(b, item.TypeOf[struct {
		ID               int64
		Name, City, Note string
		Amount           float64
	}](""))
}

func benchRead(b *testing.B, itemType item.Type) {
	path := benchFile(b)
	ctx := context.Background()
	for b.Loop() {
		r, err := newReader(readerConfig{Path: path, Header: headerExact}, itemType)
		require.NoError(b, err)
		c := r.Component().(*reader)
		require.NoError(b, c.Open(ctx, nil))
		items := r.NewItems(1000)
		for {
			items.Reset()
			err := r.Fill(ctx, items, 1000)
			_, _ = c.Position()
			if err != nil {
				require.ErrorIs(b, err, io.EOF)
				break
			}
		}
		require.NoError(b, c.Close(ctx))
	}
	perRow(b)
}

func BenchmarkBareCopy(b *testing.B) {
	path := benchFile(b)
	for b.Loop() {
		in, err := os.Open(path)
		require.NoError(b, err)
		out, err := os.Create(path + ".out")
		require.NoError(b, err)
		r := stdcsv.NewReader(bufio.NewReaderSize(in, 64<<10))
		r.ReuseRecord = true
		w := stdcsv.NewWriter(bufio.NewWriterSize(out, 64<<10))
		for {
			record, err := r.Read()
			if err != nil {
				break
			}
			require.NoError(b, w.Write(record))
		}
		w.Flush()
		require.NoError(b, errors.Join(in.Close(), out.Close()))
	}
	perRow(b)
}

// BenchmarkCopy is W3b without the engine: chunks of 1000, without the fsync of each commit, which a bare
// loop does not have either.
func BenchmarkCopy(b *testing.B) { benchCopy(b, benchItem(b, false), false) }

func BenchmarkCopyTyped(b *testing.B) { benchCopy(b, benchItem(b, true), false) }

func BenchmarkCopyDurable(b *testing.B) { benchCopy(b, benchItem(b, false), true) }

func benchCopy(b *testing.B, item item.Type, durable bool) {
	path := benchFile(b)
	ctx := context.Background()
	for b.Loop() {
		r, err := newReader(readerConfig{Path: path, Header: headerExact}, item)
		require.NoError(b, err)
		w, err := newWriter(writerConfig{Path: path + ".out", Header: true}, registry.BuildContext{In: item})
		require.NoError(b, err)
		in, out := r.Component().(*reader), w.Component().(*writer)
		require.NoError(b, errors.Join(in.Open(ctx, nil), out.Open(ctx, nil)))
		items := r.NewItems(1000)
		for ended := false; !ended; {
			items.Reset()
			err := r.Fill(ctx, items, 1000)
			ended = err != nil
			require.NoError(b, w.Write(ctx, items))
			if durable {
				require.NoError(b, out.Prepare(ctx))
			}
			_, err = out.Position() // the commit
			require.NoError(b, errors.Join(err, out.Release(ctx)))
		}
		require.NoError(b, errors.Join(out.Finish(ctx), in.Close(ctx), out.Close(ctx)))
	}
	perRow(b)
}

// BenchmarkSeek is W5: the position after the last but one row.
func BenchmarkSeek(b *testing.B) {
	path := benchFile(b)
	at := positionBehind(b, path, benchRows-1)
	ctx := context.Background()
	for b.Loop() {
		r, err := newReader(readerConfig{Path: path, Header: headerExact}, nil)
		require.NoError(b, err)
		c := r.Component().(*reader)
		require.NoError(b, c.Open(ctx, at))
		require.NoError(b, r.Fill(ctx, r.NewItems(1), 1))
		require.NoError(b, c.Close(ctx))
	}
}
