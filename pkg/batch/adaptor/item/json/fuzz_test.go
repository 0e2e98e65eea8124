package json

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func fuzzed(t require.TestingT) item.Type {
	field := func(name string, kind row.Kind, from string) row.Field {
		return row.Field{Name: name, Kind: kind, From: from, Nullable: true, Optional: true}
	}
	s, err := row.NewSchema(
		field("id", row.Int, ""), field("buyer", row.String, "buyer.name"), field("sku", row.String, "lines.sku"),
		field("n", row.DecimalKind, "lines.n"), field("more", row.String, "lines"), field("at", row.Timestamp, "properties.at"), field("x", row.Float, "geometry.coordinates[0]"),
	)
	require.NoError(t, err)
	return item.RowOf("", s)
}

type form struct {
	name, items, explode string
	longest              registry.Size
}

func (f form) reader(t require.TestingT, path string) (r item.Reader) {
	var err error
	if f.name == "json" {
		r, err = newArrayReader(readerConfig{Path: path, Items: f.items, Explode: f.explode, MaxLine: f.longest}, fuzzed(t))
	} else {
		r, err = newLinesReader(linesReaderConfig{Path: path, Explode: f.explode, MaxLine: f.longest}, fuzzed(t))
	}
	require.NoError(t, err)
	return r
}

// FuzzReader reads garbage to its end. An error has a position; a restart at each position gives the same
// rest; an unreadable text fails in the same way if it is read alone; and items that were read are written
// and read again.
func FuzzReader(f *testing.F) {
	for _, name := range []string{"orders.json", "stations.geojson"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "jobs", "data", name))
		require.NoError(f, err)
		f.Add(string(text), uint8(1))
		f.Add(string(text), uint8(7))
	}
	for _, text := range []string{
		orders, array, content, "", "[]", "[", "[[", "{}", "\xEF\xBB\xBF[{}]", "[{\"id\":1}\r\n,{\"id\":2}]", `{"data":{"orders":[{"lines":[1,2]}]}}`,
		"{\"id\":1,\"tags\":[\"x\",null]}\n{\"id\":2,\n{\"tags\":[\"y\"],\"id\":3}", `{"lines":[{"sku":"a","n":1e400},{"n":1.50}]}`, `[{"lines":[{"a":1},{"a":1}],"lines":[]}]`, `[{"\ud800":1}]`,
	} {
		for mode := uint8(0); mode < 16; mode += 3 {
			f.Add(text, mode)
		}
	}
	f.Fuzz(func(t *testing.T, text string, mode uint8) {
		if len(text) > 4000 {
			return
		}
		way := form{name: []string{"json", "jsonl"}[mode&1], longest: registry.Size([]int64{0, 300}[mode>>3&1])}
		way.explode = []string{"", "lines"}[mode>>1&1]
		way.items = []string{"", "data.orders"}[mode>>2&1]
		path := filepath.Join(t.TempDir(), "in")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		whole := way.read(t, path, nil)
		for i, at := range whole.at {
			require.Equal(t, whole.texts[i:], way.read(t, path, at).texts, "restarted behind %d at %s", i, at)
		}
		if len(whole.rows) > 0 {
			writtenAndRead(t, whole.rows)
		}
	})
}

type reading struct {
	texts []string
	at    []item.Position
	rows  []item.Row
}

func (f form) read(t *testing.T, path string, from item.Position) (all reading) {
	r := f.reader(t, path)
	defer func() { require.NoError(t, r.Component().(item.Closer).Close(context.Background())) }()
	if err := r.Component().(item.Opener).Open(t.Context(), from); err != nil {
		require.ErrorContains(t, err, path)
		require.Nil(t, from, "it has been opened before: %v", err)
		return reading{texts: []string{err.Error()}}
	}
	for {
		at, err := r.Component().(item.Positioner).Position()
		require.NoError(t, err)
		require.LessOrEqual(t, len(at), ports.MaxPositionBytes)
		all.at = append(all.at, append(item.Position(nil), at...))
		items := r.NewItems(1)
		err = r.Fill(t.Context(), items, 1)
		switch {
		case err == nil:
			all.rows = append(all.rows, items.At(0).(item.Row))
			all.texts = append(all.texts, items.Meta(0).String()+" "+shown(items.At(0).(item.Row)))
			continue
		case item.IsConsumed(err):
			all.texts = append(all.texts, err.Error())
			f.failsAlone(t, r, err)
			continue
		case !errors.Is(err, io.EOF):
			require.ErrorContains(t, err, path+":")
		}
		all.texts = append(all.texts, err.Error())
		return all
	}
}

func shown(r item.Row) string {
	var values []string
	for _, v := range r.Values() {
		values = append(values, v.Kind().String()+" "+v.String())
	}
	return strings.Join(values, ", ")
}

func (f form) failsAlone(t *testing.T, r item.Reader, failure error) {
	var bad *item.ConsumedError
	require.ErrorAs(t, failure, &bad)
	require.Positive(t, bad.Meta.Line, failure)
	raw, truncated, _ := r.Component().(item.RawReader).RawText().Bounded()
	if truncated {
		return
	}
	alone := f.reader(t, "gone")
	require.NoError(t, alone.Component().(item.RawOpener).OpenRaw(t.Context(), bad.Meta, raw))
	err := alone.Fill(t.Context(), alone.NewItems(1), 1)
	require.EqualError(t, err, failure.Error(), "the text alone: %q", raw.Text)
	require.NoError(t, alone.Component().(item.Closer).Close(t.Context()))
}

func writtenAndRead(t *testing.T, rows []item.Row) {
	for _, name := range []string{"json", "jsonl"} {
		path := filepath.Join(t.TempDir(), "out")
		newWriter := map[string]func(writerConfig, registry.BuildContext) (item.Writer, error){"json": newArrayWriter, "jsonl": newLinesWriter}[name]
		w, err := newWriter(writerConfig{Path: path}, registry.BuildContext{In: fuzzed(t), FileMode: 0o600})
		require.NoError(t, err)
		c := w.Component()
		require.NoError(t, c.(item.Opener).Open(t.Context(), nil))
		require.NoError(t, w.Write(t.Context(), &item.Slice[item.Row]{Items: append([]item.Row(nil), rows...), Metas: make([]item.Meta, len(rows))}))
		require.NoError(t, c.(item.Preparer).Prepare(t.Context()))
		require.NoError(t, c.(item.Releaser).Release(t.Context()))
		require.NoError(t, c.(item.Finisher).Finish(t.Context()))
		require.NoError(t, c.(item.Closer).Close(t.Context()))
		again := form{name: name}.read(t, path, nil)
		require.Len(t, again.rows, len(rows), again.texts)
		for i := range rows {
			require.Equal(t, shown(rows[i]), shown(again.rows[i]))
		}
	}
}
