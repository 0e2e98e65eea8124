//test:plain

package parquet

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func fileWriter(t testing.TB, cfg writerConfig, of item.Type, attempt core.Attempt) item.Writer {
	if cfg.GroupRows == 0 {
		cfg.GroupRows = 2
	}
	w, err := newWriter(cfg, itemtest.Use(of, attempt))
	require.NoError(t, err)
	return w
}

// contents are the rows of a file as text; empty without a file.
func contents(t testing.TB, path string, of item.Type) string {
	if _, err := os.Stat(path); err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
		return ""
	}
	list, err := readAll(t, path, of)
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString("rows:\n")
	for _, r := range list {
		for _, v := range r.Values() {
			fmt.Fprintf(&b, "%s %s|", v.Kind(), v)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

type sale struct {
	ID   int64
	Name string
	Net  *float64 `from:"Net $"`
}

func sales(n, from int) []sale {
	list := make([]sale, n)
	for i := range list {
		list[i] = sale{ID: int64(from + i), Name: fmt.Sprint("n", from+i)}
		if i%2 == 0 {
			list[i].Net = new(float64(i) + 0.5)
		}
	}
	return list
}

func TestTheWriterKeepsTheWriterContract(t *testing.T) {
	t.Parallel()
	of := item.TypeOf[sale]("sale")
	path := filepath.Join(t.TempDir(), "out", "sales.parquet")
	write := func(t testing.TB, attempt core.Attempt) item.Writer {
		return fileWriter(t, writerConfig{Path: path}, of, attempt)
	}
	rows := itemOf(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String}, row.Field{Name: "Net $", Kind: row.Float, Nullable: true})
	itemtest.Writer(t, itemtest.WriterConfig{
		New:    func(t testing.TB) item.Writer { return write(t, core.Attempt{Exclusive: true}) },
		NewFor: write, Hidden: true,
		Chunks: func(testing.TB) []item.Items {
			return itemtest.Chunks(sales(3, 1), sales(1, 4), sales(2, 5))
		},
		Contents: func(t testing.TB) string { return contents(t, path, rows) },
		Clear:    func(t testing.TB) { require.NoError(t, os.RemoveAll(filepath.Dir(path))) },
		Lose:     func(t testing.TB) { itemkit.RemoveParts(t, path) },
		Want:     "rows:\nint 1|string n1|float 0.5|\nint 2|string n2|null null|\nint 3|string n3|float 2.5|\nint 4|string n4|float 0.5|\nint 5|string n5|float 0.5|\nint 6|string n6|null null|\n",
	})
}

func exactly(t testing.TB, text string) row.Value {
	d, err := row.ParseDecimal(text)
	require.NoError(t, err)
	return row.DecimalValue(d)
}

// drawn returns a value of a kind, of those that a column holds.
func drawn(t *rapid.T, f row.Field, kind row.Kind) row.Value {
	if elem, is := kind.Elem(); is {
		v, err := row.ListValue(elem, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) row.Value {
			if rapid.IntRange(0, 3).Draw(t, "null") == 0 {
				return row.Value{}
			}
			return drawn(t, f, elem)
		}), 0, 4).Draw(t, "elements"))
		require.NoError(t, err)
		return v
	}
	switch kind {
	case row.Int:
		if strings.HasSuffix(f.Name, "32") {
			return row.IntValue(int64(rapid.Int32().Draw(t, f.Name)))
		}
		return row.IntValue(rapid.Int64().Draw(t, f.Name))
	case row.Float:
		return row.FloatValue(rapid.Float64().Draw(t, f.Name))
	case row.DecimalKind:
		d, err := row.NewDecimal(rapid.Int64Range(-999_999_999, 999_999_999).Draw(t, f.Name), 2)
		require.NoError(t, err)
		if strings.HasSuffix(f.Name, "38") {
			d, err = d.Mul(must(row.ParseDecimal("123456789012345678901234567")))
			require.NoError(t, err)
		}
		return row.DecimalValue(d)
	case row.Bool:
		return row.BoolValue(rapid.Bool().Draw(t, f.Name))
	case row.DateKind:
		return row.DateValue(row.Date(rapid.Int32Range(-719162, 2932896).Draw(t, f.Name)))
	case row.Timestamp:
		return row.TimestampValue(time.UnixMicro(rapid.Int64Range(-62135596800_000_000+1e12, 253402300799_999_999-1e12).Draw(t, f.Name)).UTC())
	case row.JSONKind:
		return row.JSONValue(row.JSON(fmt.Sprintf(`{"a":[%d,null]}`, rapid.Int().Draw(t, f.Name))))
	case row.UUIDKind:
		return row.UUIDValue(row.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, f.Name)))
	case row.BytesKind:
		return row.BytesValue(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, f.Name))
	default:
		return row.StringValue(rapid.String().Draw(t, f.Name))
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// written are fields of all types, as `columns` says.
func written() (fields []row.Field, columns map[string]string) {
	for _, k := range []row.Kind{row.String, row.Int, row.Float, row.DecimalKind, row.Bool, row.DateKind, row.Timestamp, row.JSONKind, row.UUIDKind, row.BytesKind} {
		f := row.Field{Name: "z" + k.String(), Kind: k}
		if k == row.DecimalKind {
			f.Scale = new(2)
		}
		null := f
		null.Name, null.Nullable = "n"+f.Name, true
		fields = append(fields, f, null)
		if k == row.JSONKind || k == row.BytesKind {
			continue
		}
		f.Name, null.Name = "l"+f.Name, "nl"+f.Name
		f.Kind, null.Kind = row.ListOf(k), row.ListOf(k)
		fields = append(fields, f, null)
	}
	one := func(name string, kind row.Kind) {
		fields = append(fields, row.Field{Name: name, Kind: kind, Nullable: true})
	}
	one("i32", row.Int)
	one("at_local", row.Timestamp)
	one("d9", row.DecimalKind)
	one("d18", row.DecimalKind)
	one("d38", row.DecimalKind)
	return fields, map[string]string{"i32": "int32", "at_local": "local", "d9": "decimal(9,2)", "d18": "decimal(18,2)", "d38": "decimal(38,2)"}
}

// writeAll writes chunks as a step does.
func writeAll(t testing.TB, w item.Writer, chunks ...item.Items) {
	ctx, c := t.Context(), w.Component().(interface {
		item.Opener
		item.Preparer
		item.Releaser
		item.Finisher
		item.Closer
		Stage(ctx context.Context) (bool, error)
	})
	require.NoError(t, c.Open(ctx, nil))
	for _, items := range chunks {
		require.NoError(t, w.Write(ctx, items))
		require.NoError(t, c.Prepare(ctx))
		require.NoError(t, c.Release(ctx))
	}
	require.NoError(t, c.Prepare(ctx))
	require.NoError(t, c.Release(ctx))
	_, err := c.Stage(ctx)
	require.NoError(t, err)
	require.NoError(t, c.Finish(ctx))
	require.NoError(t, c.Close(ctx))
}

func TestValuesOfAllTypesAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	fields, columns := written()
	of := itemOf(t, fields...)
	path := filepath.Join(t.TempDir(), "all.parquet")
	rapid.Check(t, func(rt *rapid.T) {
		var rows []item.Row
		for range rapid.IntRange(0, 5).Draw(rt, "rows") {
			values := make([]row.Value, len(fields))
			for i, f := range fields {
				if !f.Nullable || rapid.IntRange(0, 2).Draw(rt, "null") > 0 {
					values[i] = drawn(rt, f, f.Kind)
				}
			}
			rows = append(rows, row.New(of.Schema(), values))
		}
		cfg := writerConfig{Path: path, Columns: columns, Compression: rapid.SampledFrom([]string{"", "snappy", "gzip", "none"}).Draw(rt, "codec")}
		writeAll(t, fileWriter(t, cfg, of, core.Attempt{Exclusive: true}), itemtest.Chunks(rows)...)
		back, err := readAll(t, path, of)
		require.NoError(t, err)
		require.Len(t, back, len(rows))
		for i, r := range back {
			for c, v := range r.Values() {
				require.True(t, v.Equal(rows[i].Values()[c]) && v.Kind() == rows[i].Values()[c].Kind(), "%s: %s, not %s", fields[c].Name, v, rows[i].Values()[c])
			}
		}
	})
	whole, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, whole, 1, "a part is left")
}

func TestColumnsHaveTheOrderOfTheItem(t *testing.T) {
	t.Parallel()
	of := itemOf(t, row.Field{Name: "z", Kind: row.Int}, row.Field{Name: "a", Kind: row.ListOf(row.Int)}, row.Field{Name: "m", Kind: row.Bool, From: "the, M"})
	path := filepath.Join(t.TempDir(), "empty.parquet")
	writeAll(t, fileWriter(t, writerConfig{Path: path}, of, core.Attempt{Exclusive: true}))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := pq.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	columns, err := readSchema(f.Metadata().Schema)
	require.NoError(t, err)
	require.Equal(t, []string{"z", "a", "the, M"}, names(columns))
	require.Zero(t, f.NumRows())
	list, err := readAll(t, path, of)
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestAValueThatDoesNotFitItsColumnIsAnInvalidItem(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	second := time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC) // 2:30 for the second time
	for _, c := range []struct {
		field  row.Field
		column string
		value  row.Value
		want   string
	}{
		{row.Field{Kind: row.DecimalKind}, "decimal(5,2)", exactly(t, "1.234"), "field x: it has more than the column's 2 digits after the point"},
		{row.Field{Kind: row.DecimalKind}, "decimal(5,2)", exactly(t, "1000"), "field x: it has more than the column's 5 digits"},
		{row.Field{Kind: row.Int}, "int32", row.IntValue(1 << 31), "field x: it does not fit in 32 bits: declare the column without int32"},
		{row.Field{Kind: row.Timestamp, Zone: berlin}, "local", row.TimestampValue(second), "field x: a local time cannot tell it from the same time of the clock an hour before: declare the column without local"},
		{row.Field{Kind: row.Float}, "", row.FloatValue(math.NaN()), "field x: NaN"},
		{row.Field{Kind: row.String}, "", row.StringValue("\xff"), "field x: the text is not valid UTF-8"},
	} {
		c.field.Name = "x"
		of := itemOf(t, c.field)
		cfg := writerConfig{Path: filepath.Join(t.TempDir(), "x.parquet"), Columns: map[string]string{"x": c.column}}
		w := fileWriter(t, cfg, of, core.Attempt{Exclusive: true})
		require.NoError(t, w.Component().(item.Opener).Open(t.Context(), nil))
		err := w.Write(t.Context(), itemtest.Chunks([]item.Row{row.New(of.Schema(), []row.Value{c.value})})[0])
		require.ErrorContains(t, err, c.want)
		var known *exception.BatchError
		require.ErrorAs(t, err, &known)
		require.NoError(t, w.Component().(item.Closer).Close(t.Context()))
	}
}

func TestAWriterThatCannotWorkIsRefusedAtLoad(t *testing.T) {
	t.Parallel()
	open, err := row.Open()
	require.NoError(t, err)
	for want, of := range map[string]struct {
		cfg writerConfig
		in  item.Type
	}{
		"x: a column of decimals has a fixed number of digits: give the field a scale, or write columns: {x: 'decimal(18,2)'}": {in: itemOf(t, row.Field{Name: "x", Kind: row.DecimalKind})},
		"decimal(39,2): a column has 1 to 38 digits":                {writerConfig{Columns: map[string]string{"x": "decimal(39,2)"}}, itemOf(t, row.Field{Name: "x", Kind: row.DecimalKind})},
		`"int32" is no type for a field of type string`:             {writerConfig{Columns: map[string]string{"x": "int32"}}, itemOf(t, row.Field{Name: "x", Kind: row.String})},
		"the item has no field price":                               {writerConfig{Columns: map[string]string{"price": "int32"}}, itemOf(t, row.Field{Name: "x", Kind: row.Int})},
		`two columns "x"`:                                           {in: itemOf(t, row.Field{Name: "x", Kind: row.Int}, row.Field{Name: "y", Kind: row.Int, From: "x"})},
		"the fields of the items are known only when they are read": {in: item.RowOf("", open)},
	} {
		_, err := writer().Types(&of.cfg, of.in)
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, (&writerConfig{Append: true}).Validate(), "nothing can follow it")
}

func TestAFileIsContinuedWithTheSameColumnsOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.parquet")
	w := fileWriter(t, writerConfig{Path: path}, item.TypeOf[sale]("sale"), core.Attempt{Exclusive: true})
	require.NoError(t, w.Component().(item.Opener).Open(t.Context(), nil))
	require.NoError(t, w.Write(t.Context(), itemtest.Chunks(sales(2, 1))[0]))
	require.NoError(t, w.Component().(item.Preparer).Prepare(t.Context()))
	at, err := w.Component().(interface{ Position() (item.Position, error) }).Position()
	require.NoError(t, err)
	require.NoError(t, w.Component().(item.Closer).Close(t.Context()))

	other := fileWriter(t, writerConfig{Path: path}, itemOf(t, row.Field{Name: "id", Kind: row.Int}), core.Attempt{Exclusive: true})
	err = other.Component().(item.Opener).Open(t.Context(), at)
	require.ErrorContains(t, err, `cannot restart: the file was started with columns "id" int, "name" string, "Net $" float null, but now it is columns "id" int`)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, slices.DeleteFunc(left, func(e os.DirEntry) bool { return !strings.Contains(e.Name(), ".part.") }), 1, "the journal stays, alone")
}
