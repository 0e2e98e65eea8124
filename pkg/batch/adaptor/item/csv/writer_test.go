package csv

import (
	"bytes"
	"compress/gzip"
	"context"
	stdcsv "encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type sale struct {
	ID   int64
	Name string
	Net  *float64 `from:"Net $"`
}

func sales(n, from int) []sale {
	list := make([]sale, n)
	for i := range list {
		list[i] = sale{ID: int64(from + i), Name: fmt.Sprintf("n,%d", from+i)}
		if i%2 == 0 {
			list[i].Net = new(float64(i) + 0.5)
		}
	}
	return list
}

type target struct{ path string }

func (f target) contents(t testing.TB) string {
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	if filepath.Ext(f.path) == ".gz" {
		z, err := gzip.NewReader(bytes.NewReader(data))
		require.NoError(t, err)
		data, err = io.ReadAll(z)
		require.NoError(t, err)
	}
	return string(data)
}

func (f target) clear(t testing.TB) { require.NoError(t, os.RemoveAll(filepath.Dir(f.path))) }
func (f target) lose(t testing.TB)  { itemkit.RemoveParts(t, f.path) }

func (f target) writer(t testing.TB, itemType item.Type, attempt core.Attempt) item.Writer {
	w, err := newWriter(writerConfig{Path: f.path, Header: true}, itemtest.Use(itemType, attempt))
	require.NoError(t, err)
	return w
}

func TestTheWriterKeepsTheWriterContract(t *testing.T) {
	t.Parallel()
	const want = "id,name,Net $\n1,\"n,1\",0.5\n2,\"n,2\",\n3,\"n,3\",2.5\n4,\"n,4\",0.5\n5,\"n,5\",0.5\n6,\"n,6\",\n"
	open, err := row.Open()
	require.NoError(t, err)
	chunks := func(testing.TB) []item.Items {
		return itemtest.Chunks(sales(3, 1), sales(1, 4), sales(2, 5))
	}
	rows := func(t testing.TB) []item.Items {
		s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String}, row.Field{Name: "net", Kind: row.Float, From: "Net $", Nullable: true}).Schema()
		var out []item.Items
		for _, chunk := range [][]sale{sales(3, 1), sales(1, 4), sales(2, 5)} {
			var list []item.Row
			for _, x := range chunk {
				net := row.Value{}
				if x.Net != nil {
					net = row.FloatValue(*x.Net)
				}
				list = append(list, row.New(s, []row.Value{row.IntValue(x.ID), row.StringValue(x.Name), net}))
			}
			out = append(out, itemtest.Chunks(list)...)
		}
		return out
	}
	for _, c := range []struct {
		name, file string
		itemType   item.Type
		chunks     func(testing.TB) []item.Items
	}{
		{"structs", "sales.csv", item.TypeOf[sale]("sale"), chunks},
		{"structs into gzip", "sales.csv.gz", item.TypeOf[sale]("sale"), chunks},
		{"rows whose columns are known with the first", "sales.csv", item.RowOf("", open), rows},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := target{filepath.Join(t.TempDir(), "new", "folder", c.file)}
			itemtest.Writer(t, itemtest.WriterConfig{
				New:    func(t testing.TB) item.Writer { return f.writer(t, c.itemType, core.Attempt{Exclusive: true}) },
				NewFor: func(t testing.TB, attempt core.Attempt) item.Writer { return f.writer(t, c.itemType, attempt) },
				Chunks: c.chunks, Contents: f.contents, Clear: f.clear, Want: want, Hidden: true, Lose: f.lose,
			})
		})
	}
}

func write(t require.TestingT, cfg writerConfig, itemType item.Type, records ...[]string) (string, error) {
	ctx := context.Background()
	list := make([]item.Row, len(records))
	for i, record := range records {
		values := make([]row.Value, len(record))
		for k, text := range record {
			if text != "NULL" {
				values[k] = row.StringValue(text)
			}
		}
		list[i] = row.New(itemType.Schema(), values)
	}
	w, err := newWriter(cfg, registry.BuildContext{In: itemType})
	require.NoError(t, err)
	c := w.Component().(*writer)
	require.NoError(t, c.Open(ctx, nil))
	if err := w.Write(ctx, itemtest.Chunks(list)[0]); err != nil {
		return "", errors.Join(err, c.Close(ctx))
	}
	require.NoError(t, c.Release(ctx))
	require.NoError(t, c.Finish(ctx))
	require.NoError(t, c.Close(ctx))
	data, err := os.ReadFile(cfg.Path)
	require.NoError(t, err)
	return string(data), nil
}

func texts(t testing.TB, names ...string) item.Type {
	fields := make([]row.Field, len(names))
	for i, name := range names {
		fields[i] = row.Field{Name: name, Kind: row.String, Nullable: true}
	}
	return schema(t, fields...)
}

func TestTheWritersTextFollowsItsConfig(t *testing.T) {
	t.Parallel()
	record := []string{`a"b`, "NULL", " é"}
	for _, c := range []struct {
		cfg  writerConfig
		want string
	}{
		{writerConfig{Header: true}, "x,y,z\n\"a\"\"b\",,\" é\"\n"},
		{writerConfig{Delimiter: "tab", LineEnd: "crlf", Nulls: `\N`}, "\"a\"\"b\"\t\\N\t\" é\"\r\n"},
		{writerConfig{Quote: "all", Header: true, Delimiter: "é"}, "\"x\"é\"y\"é\"z\"\n\"a\"\"b\"éé\" é\"\n"},
		{writerConfig{Encoding: "latin1"}, "\"a\"\"b\",,\" \xe9\"\n"},
		{writerConfig{Encoding: "utf-8-bom"}, "\xEF\xBB\xBF\"a\"\"b\",,\" é\"\n"},
		{writerConfig{Encoding: "utf-16", Quote: "minimal"}, "\xFF\xFE\"\x00a\x00\"\x00\"\x00b\x00\"\x00,\x00,\x00\"\x00 \x00\xe9\x00\"\x00\n\x00"},
	} {
		c.cfg.Path = filepath.Join(t.TempDir(), "out.csv")
		got, err := write(t, c.cfg, texts(t, "x", "y", "z"), record)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}

func TestACharacterThatTheEncodingLacksIsAnInvalidItemAndWritesNothing(t *testing.T) {
	t.Parallel()
	cfg := writerConfig{Path: filepath.Join(t.TempDir(), "out.csv"), Encoding: "latin1"}
	_, err := write(t, cfg, texts(t, "x"), []string{"fine"}, []string{"日本"})
	require.ErrorContains(t, err, "日本")
	require.True(t, exception.IsSkippable(err))
	require.NoFileExists(t, cfg.Path)
}

// Rule D7.
func TestANumberThatIsNotFiniteIsAnInvalidItemAndWritesNothing(t *testing.T) {
	t.Parallel()
	itemType := schema(t, row.Field{Name: "x", Kind: row.Float})
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		w, err := newWriter(writerConfig{Path: filepath.Join(t.TempDir(), "out.csv")}, registry.BuildContext{In: itemType})
		require.NoError(t, err)
		c := w.Component().(*writer)
		require.NoError(t, c.Open(t.Context(), nil))
		rows := []item.Row{row.New(itemType.Schema(), []row.Value{row.FloatValue(1)}), row.New(itemType.Schema(), []row.Value{row.FloatValue(x)})}
		before := must(c.Position())
		err = w.Write(t.Context(), itemtest.Chunks(rows)[0])
		require.ErrorContains(t, err, "field x: "+row.FloatText(x)+" is not a finite number")
		require.True(t, exception.IsSkippable(err))
		require.Equal(t, before, must(c.Position()))
		require.NoError(t, c.Close(t.Context()))
	}
}

func TestOtherColumnsInTheMiddleOfAFileAreRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	open, err := row.Open()
	require.NoError(t, err)
	w, err := newWriter(writerConfig{Path: filepath.Join(t.TempDir(), "out.csv"), Header: true}, registry.BuildContext{In: item.RowOf("", open)})
	require.NoError(t, err)
	c := w.Component().(*writer)
	require.NoError(t, c.Open(ctx, nil))
	defer c.Close(ctx) //nolint:errcheck // it only wrote a test's file
	a, b := texts(t, "a"), texts(t, "a", "b")
	require.NoError(t, w.Write(ctx, itemtest.Chunks([]item.Row{row.New(a.Schema(), make([]row.Value, 1))})[0]))
	err = w.Write(ctx, itemtest.Chunks([]item.Row{row.New(b.Schema(), make([]row.Value, 2))})[0])
	require.EqualError(t, err, "csv: the file has the columns a, but the item has a, b")
}

func TestAVeryWideOpenFileRestartsWithOneHeader(t *testing.T) {
	t.Parallel()
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("column_number_%d", i)
	}
	open, err := row.Open()
	require.NoError(t, err)
	itemType := texts(t, names...)
	f := target{filepath.Join(t.TempDir(), "sub", "wide.csv")}
	itemtest.Writer(t, itemtest.WriterConfig{
		New: func(t testing.TB) item.Writer {
			w, err := newWriter(writerConfig{Path: f.path, Header: true}, registry.BuildContext{In: item.RowOf("", open)})
			require.NoError(t, err)
			return w
		},
		Chunks: func(testing.TB) []item.Items {
			one := []item.Row{row.New(itemType.Schema(), make([]row.Value, len(names)))}
			return itemtest.Chunks(one, one, one)
		},
		Contents: f.contents, Clear: f.clear, Lose: f.lose, Hidden: true,
	})
}

func TestAPartThatIsShorterThanCommittedIsRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "out.csv")
	make1 := func() *writer {
		w, err := newWriter(writerConfig{Path: path, Header: true}, registry.BuildContext{In: texts(t, "a")})
		require.NoError(t, err)
		return w.Component().(*writer)
	}
	w := make1()
	require.NoError(t, w.Open(ctx, nil))
	require.NoError(t, w.Prepare(ctx))
	at, err := w.Position()
	require.NoError(t, err)
	require.NoError(t, w.Close(ctx))
	require.NoError(t, os.Truncate(itemkit.Parts(t, path)[0], 1))
	w = make1()
	require.ErrorContains(t, w.Open(ctx, at), "has 1 bytes, but 2 were committed")
	require.NoError(t, w.Close(ctx))
}

func TestWhatIsWrittenIsReadBackByUsAndByEncodingCsv(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		item := item.RowOf("", must(row.NewSchema(
			row.Field{Name: "k1", Kind: row.String}, row.Field{Name: "k2", Kind: row.String})))
		want := recordsOf(t, 2, "ab \",;\t\n\r#éü§'")
		cfg := writerConfig{
			Path: filepath.Join(dir, "out.csv"), Header: true,
			Delimiter: rapid.SampledFrom([]string{",", ";", "tab", "§"}).Draw(t, "delimiter"),
			LineEnd:   rapid.SampledFrom([]string{"lf", "crlf"}).Draw(t, "line end"),
			Quote:     rapid.SampledFrom([]string{"minimal", "all"}).Draw(t, "quote"),
			Encoding:  rapid.SampledFrom([]filestream.EncodingName{"utf-8", "utf-8-bom", "utf-16", "utf-16le", "utf-16be", "latin1", "iso-8859-15", "windows-1252", "gb18030"}).Draw(t, "encoding"),
		}
		got, err := write(t, cfg, item, want...)
		require.NoError(t, err)
		back, _ := walk(t, readerConfig{Path: cfg.Path, Header: headerExact, Delimiter: cfg.Delimiter, Encoding: cfg.Encoding}, nil)
		require.Len(t, back, len(want))
		for i := range want {
			require.Equal(t, want[i][0]+"|"+want[i][1], back[i])
		}
		if cfg.Encoding == "utf-8" {
			r := stdcsv.NewReader(bytes.NewBufferString(got))
			r.Comma = comma(t, cfg.Delimiter)
			all, err := r.ReadAll()
			require.NoError(t, err)
			for _, record := range want { // encoding/csv turns CRLF into LF
				record[0], record[1] = strings.ReplaceAll(record[0], "\r\n", "\n"), strings.ReplaceAll(record[1], "\r\n", "\n")
			}
			require.Equal(t, append([][]string{{"k1", "k2"}}, want...), all)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
