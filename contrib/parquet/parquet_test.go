//test:plain

package parquet

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func itemOf(t testing.TB, fields ...row.Field) item.Type {
	s, err := row.NewSchema(fields...)
	require.NoError(t, err)
	return item.RowOf("", s)
}

// kinds are the fields that hold the columns of the files of testdata.
func kinds() []row.Field {
	field := func(name string, kind row.Kind) row.Field {
		return row.Field{Name: name, Kind: kind, Nullable: true}
	}
	list := []row.Field{
		field("b", row.Bool), field("u64", row.DecimalKind), field("s", row.String), field("bin", row.BytesKind), field("fixed", row.BytesKind), field("day", row.DateKind),
		field("ints", row.ListOf(row.Int)), field("texts", row.ListOf(row.String)), field("prices", row.ListOf(row.DecimalKind)), field("times", row.ListOf(row.Timestamp)),
	}
	for _, name := range []string{"i8", "i16", "i32", "i64", "u8", "u16", "u32"} {
		list = append(list, field(name, row.Int))
	}
	for _, name := range []string{"f16", "f32", "f64"} {
		list = append(list, field(name, row.Float))
	}
	for _, name := range []string{"d5", "d18", "d38"} {
		list = append(list, field(name, row.DecimalKind))
	}
	for _, name := range []string{"ms", "us", "ns", "ms_utc", "us_utc", "ns_utc"} {
		list = append(list, field(name, row.Timestamp))
	}
	for _, name := range []string{"struct", "map", "nested", "people"} {
		list = append(list, field(name, row.JSONKind))
	}
	return list
}

func fileReader(t testing.TB, path string, of item.Type) item.Reader {
	r, err := newReader(readerConfig{Path: path}, of)
	require.NoError(t, err)
	return r
}

func readAll(t testing.TB, path string, of item.Type) (list []item.Row, err error) {
	r := fileReader(t, path, of)
	defer func() { require.NoError(t, r.Component().(item.Closer).Close(t.Context())) }()
	if err := r.Component().(item.Opener).Open(t.Context(), nil); err != nil {
		return nil, err
	}
	for {
		items := r.NewItems(1)
		switch err := r.Fill(t.Context(), items, 1); {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return list, err
		}
		list = append(list, items.At(0).(item.Row))
	}
}

func TestAFileIsReadAsPyarrowReadsIt(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/pyarrow.jsonl")
	require.NoError(t, err)
	var want []map[string]any
	for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); {
		var one map[string]any
		require.NoError(t, json.Unmarshal(in.Bytes(), &one))
		want = append(want, one)
	}
	for name, rows := range map[string]int{"pyarrow.parquet": 100, "pyarrow2.parquet": 4, "old.parquet": 4} {
		list, err := readAll(t, "testdata/"+name, itemOf(t, kinds()...))
		require.NoError(t, err, name)
		require.Len(t, list, rows, name)
		for i, r := range list {
			for c, f := range kinds() {
				v := r.Values()[c]
				place := fmt.Sprint(name, " row ", i, " column ", f.Name)
				switch wanted := want[i][f.Name].(type) {
				case nil:
					require.True(t, v.IsNull(), "%s: %s", place, v)
				case string:
					same := row.Field{Kind: f.Kind}
					as, err := same.Parse(wanted)
					if f.Kind == row.String {
						as, err = row.StringValue(wanted), nil
					}
					require.NoError(t, err, place)
					require.True(t, as.Equal(v), "%s: %s, want %s", place, v, wanted)
				default:
					doc, err := json.Marshal(wanted)
					require.NoError(t, err)
					if f.Kind == row.JSONKind {
						require.JSONEq(t, string(doc), v.String(), place)
						continue
					}
					as, err := (&row.Field{Kind: f.Kind}).ParseArray(doc)
					require.NoError(t, err, place)
					require.True(t, as.Canonical().Equal(v.Canonical()), "%s: %s, want %s", place, v, doc)
				}
			}
		}
	}
}

func TestTimesOfINT96AreInUTC(t *testing.T) {
	t.Parallel()
	list, err := readAll(t, "testdata/int96.parquet", itemOf(t, row.Field{Name: "us_utc", Kind: row.Timestamp, Nullable: true}))
	require.NoError(t, err)
	var texts []string
	for _, r := range list {
		texts = append(texts, r.Values()[0].String())
	}
	require.Equal(t, []string{"2026-02-28T23:59:59.123456Z", "1815-06-18T11:35:00.000001Z", "2026-02-28T23:59:59.123456Z", "null"}, texts)
}

func TestATimeWithoutAZoneIsReadInTheZoneOfTheField(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	list, err := readAll(t, "testdata/pyarrow2.parquet", itemOf(t,
		row.Field{Name: "us", Kind: row.Timestamp, Nullable: true, Zone: zone}, row.Field{Name: "us_utc", Kind: row.Timestamp, Nullable: true, Zone: zone}))
	require.NoError(t, err)
	require.Equal(t, "2026-02-28T22:59:59.123456Z", list[0].Values()[0].String())
	require.Equal(t, "2026-02-28T23:59:59.123456Z", list[0].Values()[1].String())
}

func TestAFileOfDuckDBIsRead(t *testing.T) {
	t.Parallel()
	null := func(name string, kind row.Kind) row.Field {
		return row.Field{Name: name, Kind: kind, Nullable: true}
	}
	nested := null("letters", row.ListOf(row.String))
	nested.From = "who.b"
	list, err := readAll(t, "testdata/duckdb.parquet", itemOf(t, null("id", row.Int), null("price", row.DecimalKind), null("big", row.DecimalKind), null("seen", row.Timestamp), null("seen_utc", row.Timestamp),
		null("day", row.DateKind), null("key", row.UUIDKind), null("ints", row.ListOf(row.Int)), nested, null("by_key", row.JSONKind), null("u", row.DecimalKind), null("bin", row.BytesKind), null("doc", row.JSONKind)))
	require.NoError(t, err)
	require.Len(t, list, 2)
	var texts []string
	for i, v := range list[0].Values() {
		texts = append(texts, v.String())
		require.Equal(t, i > 0, list[1].Values()[i].IsNull())
	}
	require.Equal(t, []string{"1", "12.50", "10000000000", "2026-02-28T23:59:59.123456Z", "2026-02-28T23:59:59.123456Z", "2026-02-28", "01234567-89ab-cdef-0123-456789abcdef",
		"[1,2,null]", `["x"]`, `{"k":1.5}`, "18446744073709551615", "AP8=", `{"a":[1,null]}`}, texts)
}

func TestAColumnThatAFieldCannotHoldIsRefusedByName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file  string
		field row.Field
		want  string
	}{
		{"lz4", row.Field{Name: "i64", Kind: row.Int}, "column i64 is compressed with LZ4"},
		{"unusable", row.Field{Name: "t", Kind: row.String}, "column t: it is TIME"},
		{"unusable", row.Field{Name: "i", Kind: row.String}, "column i: it is INTERVAL, for which an item has no type"},
		{"pyarrow2", row.Field{Name: "d18", Kind: row.Bool}, "column d18: it is DECIMAL(18,6), which a field of type bool cannot hold: declare it as decimal"},
		{"pyarrow2", row.Field{Name: "people", Kind: row.ListOf(row.String)}, "column people: it is a list, which a field of type list of string cannot hold: declare it as json"},
		{"pyarrow2", row.Field{Name: "texts", Kind: row.ListOf(row.Bool), Nullable: true}, ""},
		{"pyarrow2", row.Field{Name: "i46", Kind: row.Int}, `the file has no column "i46" for field i46`},
	} {
		_, err := readAll(t, "testdata/"+c.file+".parquet", itemOf(t, c.field))
		require.ErrorContains(t, err, c.want)
	}
	list, err := readAll(t, "testdata/unusable.parquet", itemOf(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "lacking", Kind: row.Int, Nullable: true, Optional: true}))
	require.NoError(t, err, "other columns are not read")
	require.Len(t, list, 1)
}

func TestAValueThatDoesNotFitIsAnInvalidItem(t *testing.T) {
	t.Parallel()
	r := fileReader(t, "testdata/pyarrow2.parquet", itemOf(t, row.Field{Name: "u64", Kind: row.Int}, row.Field{Name: "i8", Kind: row.Int}))
	require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
	defer func() { require.NoError(t, r.Component().(item.Closer).Close(t.Context())) }()
	var got []string
	for range 4 {
		items := r.NewItems(1)
		err := r.Fill(t.Context(), items, 1)
		if err == nil {
			got = append(got, items.At(0).(item.Row).Values()[1].String())
			continue
		}
		require.True(t, item.IsConsumed(err), err)
		got = append(got, err.Error())
	}
	require.Equal(t, []string{"-128", "testdata/pyarrow2.parquet:2: field u64: 18446744073709551615 is not of type int", "0", "testdata/pyarrow2.parquet:4: field u64: null is not an int (the field is not nullable)"}, got)
}

func copyOf(t testing.TB, name string) (path string, text []byte) {
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path, text
}

func TestTheReaderKeepsTheReaderContract(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pyarrow.parquet", "old.parquet"} {
		path, text := copyOf(t, name)
		itemtest.Reader(t, itemtest.ReaderConfig{
			New:    func(t testing.TB) item.Reader { return fileReader(t, path, itemOf(t, kinds()...)) },
			Change: func(t testing.TB) { require.NoError(t, os.WriteFile(path, append(text, 0), 0o600)) },
		})
	}
}

func TestAFileThatChangesWhileItIsReadFailsTheStep(t *testing.T) {
	t.Parallel()
	path, text := copyOf(t, "pyarrow.parquet")
	r := fileReader(t, path, itemOf(t, kinds()...))
	require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
	require.NoError(t, r.Fill(t.Context(), r.NewItems(1), 1))
	require.NoError(t, os.WriteFile(path, text[:len(text)/2], 0o600))
	var err error
	for err == nil {
		err = r.Fill(t.Context(), r.NewItems(1), 1)
	}
	require.ErrorContains(t, err, "changed while it was read")
	require.False(t, exception.IsSkippable(err))
	require.NoError(t, r.Component().(item.Closer).Close(t.Context()))
}

// damaged reads a text that may be no parquet file.
func damaged(t testing.TB, path string, text []byte) {
	require.NoError(t, os.WriteFile(path, text, 0o600))
	of := itemOf(t, kinds()...)
	_, err := readAll(t, path, of)
	var known *item.ConsumedError
	if err != nil && !errors.As(err, &known) {
		require.ErrorContains(t, err, path)
		require.False(t, exception.IsSkippable(err), err)
	}
}

func TestATruncatedFileIsAnErrorAndNeverAPanic(t *testing.T) {
	t.Parallel()
	path, text := copyOf(t, "pyarrow.parquet")
	for i := range 300 {
		cut := text[:len(text)*i/300]
		damaged(t, path, cut)
		damaged(t, path, append(append([]byte{}, cut...), text[len(text)-8:]...))
		flipped := bytes.Clone(text)
		flipped[len(text)*i/300] ^= 0xff
		damaged(t, path, flipped)
	}
}

func FuzzReader(f *testing.F) {
	for _, name := range []string{"pyarrow2.parquet", "old.parquet", "duckdb.parquet", "int96.parquet"} {
		text, err := os.ReadFile("testdata/" + name)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) { damaged(t, filepath.Join(t.TempDir(), "in.parquet"), text) })
}

type narrow struct {
	ID    int64   `parquet:"id"`
	Name  string  `parquet:"name"`
	Price float64 `parquet:"price"`
}

func BenchmarkReader(b *testing.B) {
	path := filepath.Join(b.TempDir(), "in.parquet")
	file, err := os.Create(path)
	require.NoError(b, err)
	w := pq.NewGenericWriter[narrow](file, pq.Compression(&pq.Zstd))
	for i := range 1_000_000 {
		_, err := w.Write([]narrow{{int64(i), fmt.Sprint("name ", i%1000), float64(i)}})
		require.NoError(b, err)
	}
	require.NoError(b, errors.Join(w.Close(), file.Close()))
	b.Run("library", func(b *testing.B) {
		for b.Loop() {
			file, err := os.Open(path)
			require.NoError(b, err)
			r, list := pq.NewGenericReader[narrow](file), make([]narrow, 1000)
			for err == nil {
				_, err = r.Read(list)
			}
			require.NoError(b, errors.Join(r.Close(), file.Close()))
		}
	})
	b.Run("surfin", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r := fileReader(b, path, itemOf(b, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String}, row.Field{Name: "price", Kind: row.Float}))
			require.NoError(b, r.Component().(item.Opener).Open(b.Context(), nil))
			items, err := r.NewItems(1000), error(nil)
			for err == nil {
				items.Reset()
				err = r.Fill(b.Context(), items, 1000)
			}
			require.ErrorIs(b, err, io.EOF)
			require.NoError(b, r.Component().(item.Closer).Close(b.Context()))
		}
	})
}
