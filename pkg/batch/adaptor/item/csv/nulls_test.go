package csv

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func TestAnEmptyFieldIsNullWithoutQuotesOnly(t *testing.T) {
	t.Parallel()
	content := "a,b,c,d,e\n,,,,\n\"\",\"\",\"\",\"\",\"\"\n"
	fields := []row.Field{
		{Name: "a", Kind: row.String, Nullable: true}, {Name: "b", Kind: row.String}, {Name: "c", Kind: row.BytesKind, Nullable: true},
		{Name: "d", Kind: row.Int, Nullable: true}, {Name: "e", Kind: row.String, Nullable: true, Nulls: []string{""}},
	}
	cfg := readerConfig{Path: file(t, "in.csv", content), Header: headerExact}
	require.Equal(t, []string{"null||null|null|null", "|||null|null"}, outcomes(t, cfg, schema(t, fields...), nil))
	require.Equal(t, []string{"||||", "||||"}, outcomes(t, cfg, nil, nil), "columns without a type are strings")
	cfg.Trim = true
	cfg.Path = file(t, "in.csv", "a\n x\n  \" \"\n ,\n")
	require.Equal(t, []string{"x", "", "!:4: the record has 2 fields, not 1"}, outcomes(t, cfg, schema(t, fields[0]), nil))
}

func TestMarkersOfTheFileCountWithoutQuotesThoseOfAFieldAlways(t *testing.T) {
	t.Parallel()
	content := "a,b,n\nNA,NA,NA\n\"NA\",\"NA\",1\n,,\n\"-\",-,-\n\\N,\"\\N\",2\n"
	fields := []row.Field{
		{Name: "a", Kind: row.String, Nullable: true}, {Name: "b", Kind: row.String, Nullable: true, Nulls: []string{"-", `\N`}}, {Name: "n", Kind: row.Int, Nullable: true},
	}
	cfg := readerConfig{Path: file(t, "in.csv", content), Header: headerExact, Nulls: []string{"NA", `\N`}}
	require.Equal(t, []string{
		"null|null|null", "NA|NA|1", "||null", `!:5: character 7: field n: "-" is not an int`, `null|\N|2`,
	}, outcomes(t, cfg, schema(t, fields...), nil))
	fields[0].Nullable = false
	require.Equal(t, `!:2: character 1: field a: "NA" is not a string (the field is not nullable)`, outcomes(t, cfg, schema(t, fields...), nil)[0])
	fields[0].Default = row.StringValue("none")
	require.Equal(t, "none|null|null", outcomes(t, cfg, schema(t, fields...), nil)[0])
	cfg.Nulls = []string{""}
	fields[0] = row.Field{Name: "a", Kind: row.String}
	require.Equal(t, "||null", outcomes(t, cfg, schema(t, fields[0], row.Field{Name: "b", Kind: row.String}, fields[2]), nil)[2], "an empty text is a value of a string")
}

func TestABlankLineOfOneColumnIsNull(t *testing.T) {
	t.Parallel()
	nullable, plain := schema(t, row.Field{Name: "a", Kind: row.String, Nullable: true}), schema(t, row.Field{Name: "a", Kind: row.String})
	content := "a\n\nx\r\n\r\n# no\n\n\"\"\n\n"
	for header, from := range map[string]int{headerExact: 0, headerNone: 2} {
		cfg := readerConfig{Header: header, Comment: "#", Path: file(t, "in.csv", content[from:])}
		require.Equal(t, []string{"null", "x", "null", "null", "", "null"}, outcomes(t, cfg, nullable, nil))
		require.Equal(t, []string{"x", ""}, outcomes(t, cfg, plain, nil))
		itemtest.Reader(t, itemtest.ReaderConfig{New: func(t testing.TB) item.Reader {
			r, err := newReader(cfg, nullable)
			require.NoError(t, err)
			return r
		}})
	}
	cfg := readerConfig{Header: headerExact, Path: file(t, "in.csv", "a,b\n\n1,2\n\n")}
	require.Equal(t, []string{"1"}, outcomes(t, cfg, nullable, nil), "the file has two columns")
	cfg = readerConfig{Header: headerExact, Path: file(t, "in.csv", "a\r\r1\r\"\"\r")}
	require.Equal(t, []string{"null", "1", ""}, outcomes(t, cfg, nullable, nil))
}

func TestTheWriterTellsNullFromText(t *testing.T) {
	t.Parallel()
	list := []row.Field{
		{Name: "s", Kind: row.String, Nullable: true}, {Name: "p", Kind: row.String}, {Name: "i", Kind: row.Int, Nullable: true},
		{Name: "o", Kind: row.String, Nullable: true, Nulls: []string{"-"}},
	}
	rows := [][]row.Value{
		{{}, row.StringValue(""), {}, {}},
		{row.StringValue(""), row.StringValue("NA"), row.IntValue(0), row.StringValue("-")},
		{row.StringValue("NA"), row.StringValue("0"), row.IntValue(1), row.StringValue("NA")},
	}
	for _, c := range []struct {
		cfg  writerConfig
		want string
	}{
		{writerConfig{}, ",,,-\n\"\",NA,0,\"-\"\nNA,0,1,NA\n"},
		{writerConfig{Nulls: "NA"}, "NA,,NA,-\n\"\",\"NA\",0,\"-\"\n\"NA\",0,1,\"NA\"\n"},
		{writerConfig{Nulls: "0"}, "0,,0,-\n\"\",NA,\"0\",\"-\"\nNA,\"0\",1,NA\n"},
		{writerConfig{Quote: "all"}, ",\"\",,-\n\"\",\"NA\",\"0\",\"-\"\n\"NA\",\"0\",\"1\",\"NA\"\n"},
	} {
		c.cfg.Path = filepath.Join(t.TempDir(), "out.csv")
		require.Equal(t, c.want, writeRows(t, c.cfg, schema(t, list...), rows))
	}
	one := schema(t, list[2])
	require.Equal(t, "\n0\n", writeRows(t, writerConfig{Path: filepath.Join(t.TempDir(), "one.csv")}, one, [][]row.Value{{{}}, {row.IntValue(0)}}))
	require.ErrorContains(t, (&writerConfig{Nulls: "a,b"}).Validate(), `nulls: a null is written without quotes: "a,b" contains a delimiter, a quote or a line end`)
}

func writeRows(t require.TestingT, cfg writerConfig, itemType item.Type, rows [][]row.Value) string {
	list := make([]item.Row, len(rows))
	for i, values := range rows {
		list[i] = row.New(itemType.Schema(), values)
	}
	ctx := context.Background()
	w, err := newWriter(cfg, registry.BuildContext{In: itemType})
	require.NoError(t, err)
	c := w.Component().(*writer)
	require.NoError(t, c.Open(ctx, nil))
	if len(list) > 0 {
		require.NoError(t, w.Write(ctx, itemtest.Chunks(list)[0]))
	}
	require.NoError(t, c.Release(ctx))
	require.NoError(t, c.Finish(ctx))
	require.NoError(t, c.Close(ctx))
	return target{cfg.Path}.contents(nil)
}

func TestOneItemTypeReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := rapid.SampledFrom([]string{"", "NULL", "NA", `\N`, "-", " ", "null", "0", "true", "a,b", "\"", "\"\"", "#", "\r\n", "\r", "\n", "x\r\ny", "é", "\t"})
	values := map[row.Kind]func(t *rapid.T) row.Value{
		row.String:    func(t *rapid.T) row.Value { return row.StringValue(text.Draw(t, "text")) },
		row.BytesKind: func(t *rapid.T) row.Value { return row.BytesText(text.Draw(t, "bytes")) },
		row.Int:       func(t *rapid.T) row.Value { return row.IntValue(rapid.Int64Range(-2, 2).Draw(t, "int")) },
		row.DecimalKind: func(t *rapid.T) row.Value {
			return row.DecimalValue(row.DecimalOf(rapid.Int64Range(-2, 2).Draw(t, "decimal")))
		},
		row.Bool:     func(t *rapid.T) row.Value { return row.BoolValue(rapid.Bool().Draw(t, "bool")) },
		row.DateKind: func(t *rapid.T) row.Value { return row.DateValue(row.Date(rapid.Int64Range(0, 9).Draw(t, "date"))) },
		row.JSONKind: func(t *rapid.T) row.Value {
			return row.JSONValue(row.JSON(rapid.SampledFrom([]string{`""`, "0", "true", "[]", `"NA"`, `"\\N"`}).Draw(t, "json")))
		},
		row.ListOf(row.String): func(t *rapid.T) row.Value {
			list, err := row.ListValue(row.String, []row.Value{row.StringValue(text.Draw(t, "element")), {}}[:rapid.IntRange(0, 2).Draw(t, "elements")])
			require.NoError(t, err)
			return list
		},
	}
	kinds := []row.Kind{row.String, row.String, row.BytesKind, row.Int, row.DecimalKind, row.Bool, row.DateKind, row.JSONKind, row.ListOf(row.String)}
	rapid.Check(t, func(t *rapid.T) {
		fields := make([]row.Field, rapid.IntRange(1, 3).Draw(t, "columns"))
		for i := range fields {
			fields[i] = row.Field{Name: fmt.Sprint("c", i), Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Nullable: rapid.Bool().Draw(t, "nullable")}
		}
		itemType := item.RowOf("", must(row.NewSchema(fields...)))
		rows := make([][]row.Value, rapid.IntRange(0, 6).Draw(t, "rows"))
		for i := range rows {
			rows[i] = make([]row.Value, len(fields))
			for k, f := range fields {
				if !f.Nullable || rapid.IntRange(0, 2).Draw(t, "null") > 0 {
					rows[i][k] = values[f.Kind](t)
				}
			}
		}
		w := writerConfig{
			Path: filepath.Join(dir, "x.csv"), Header: rapid.Bool().Draw(t, "header"), Quote: rapid.SampledFrom([]string{"minimal", "all"}).Draw(t, "quote"),
			LineEnd: rapid.SampledFrom([]string{"lf", "crlf"}).Draw(t, "line end"), Nulls: rapid.SampledFrom([]string{"", "NA", `\N`, "0", "true", "null"}).Draw(t, "nulls"),
		}
		written := writeRows(t, w, itemType, rows)
		cfg := readerConfig{Path: w.Path, Header: strconv.FormatBool(w.Header)}
		if w.Nulls != "" {
			cfg.Nulls = []string{w.Nulls}
		}
		r, err := newReader(cfg, itemType)
		require.NoError(t, err)
		c := r.Component().(*reader)
		require.NoError(t, c.Open(context.Background(), nil))
		items := r.NewItems(len(rows) + 1)
		err = r.Fill(context.Background(), items, len(rows)+1)
		require.ErrorIs(t, err, io.EOF, "%q", written)
		require.Equal(t, len(rows), items.Len(), "%q", written)
		for i := range rows {
			got := items.At(i).(item.Row)
			for k := range fields {
				require.True(t, rows[i][k].Equal(got.At(k)), "row %d: %v is read back as %v: %q", i, rows[i], got, written)
			}
		}
		require.NoError(t, c.Close(context.Background()))
	})
}
