package text

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// FuzzReader reads garbage to its end, and again from each position: the same items, and no panic. Items that
// were read are written and read again, or refused as invalid.
func FuzzReader(f *testing.F) {
	sums := "D 10000150  1.50\nD-20-00005      \nD 30      2.2500\nD  1999999 -0.75\nT004 00100014400002103.0000\n"
	for _, seed := range []string{dirty, sums, "", "HEAD", "HEAD\nT0000000\n", "HEAD\r\nD00001Ada\r\n", "HEAD\nD\x00\xff\u0085\nT-000001\n"} {
		for mode := range uint8(4) {
			f.Add(seed, mode)
		}
	}
	f.Fuzz(func(t *testing.T, content string, mode uint8) {
		path := fileOf(t, content)
		cfg, of, write := readerConfig(path), payment(t), writerConfig("")
		if mode&2 != 0 {
			cfg = fixedReaderConfig{Path: path, Columns: transferColumns(), Record: "D", Trailer: transferTrailer()}
			of, write = transfer(t), fixedWriterConfig{Columns: transferColumns(), Record: "D", Trailer: transferTrailer()}
		}
		cfg.Short, cfg.MaxLine = mode&1 != 0, 100
		reader := func() item.Reader {
			r, err := newFixedReader(cfg, of)
			require.NoError(t, err)
			return r
		}
		first := reader()
		if err := first.Component().(item.Opener).Open(t.Context(), nil); err != nil { // it has no header
			require.ErrorContains(t, err, path+":")
			require.NoError(t, first.Component().(item.Closer).Close(t.Context()))
			return
		}
		whole := readOn(t, first)
		require.NoError(t, first.Component().(item.Closer).Close(t.Context()))
		for i, at := range whole.at {
			again := reader()
			require.NoError(t, again.Component().(item.Opener).Open(t.Context(), at))
			rest := readOn(t, again)
			require.Equal(t, whole.texts[i+1:], rest.texts)
			require.NoError(t, again.Component().(item.Closer).Close(t.Context()))
		}
		for _, one := range whole.rows {
			writtenAndRead(t, write, cfg, of, one)
		}
	})
}

func writtenAndRead(t *testing.T, write fixedWriterConfig, read fixedReaderConfig, of item.Type, one item.Row) {
	write.Path = filepath.Join(t.TempDir(), "out.txt")
	w, err := newFixedWriter(write, registry.BuildContext{In: of})
	require.NoError(t, err)
	c := w.Component().(*writer)
	require.NoError(t, c.Open(t.Context(), nil))
	if err := w.Write(t.Context(), itemtest.Chunks([]item.Row{one})[0]); err != nil {
		require.NoError(t, c.Close(t.Context()))
		require.True(t, exception.IsSkippable(err), "%v", err)
		return
	}
	require.NoError(t, c.Release(t.Context()))
	err = c.Finish(t.Context())
	require.NoError(t, c.Close(t.Context()))
	if err != nil {
		require.ErrorContains(t, err, "sum", "a sum may be too long for its place")
		return
	}
	read.Path, read.MaxLine = write.Path, 0
	r, err := newFixedReader(read, of)
	require.NoError(t, err)
	require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
	again := readOn(t, r)
	require.NoError(t, r.Component().(item.Closer).Close(t.Context()))
	require.Equal(t, []string{texts(one), io.EOF.Error()}, again.texts)
}

type reading struct {
	texts []string
	at    []item.Position
	rows  []item.Row
}

func readOn(t *testing.T, r item.Reader) (all reading) {
	for {
		items := r.NewItems(1)
		err := r.Fill(t.Context(), items, 1)
		switch {
		case err == nil:
			all.texts = append(all.texts, texts(items.At(0)))
			all.rows = append(all.rows, items.At(0).(item.Row))
		case item.IsConsumed(err):
			all.texts = append(all.texts, err.Error())
		default:
			if !errors.Is(err, io.EOF) {
				require.ErrorContains(t, err, "in.txt:")
			}
			all.texts = append(all.texts, err.Error())
			return all
		}
		at, err := r.Component().(item.Positioner).Position()
		require.NoError(t, err)
		all.at = append(all.at, at)
	}
}
