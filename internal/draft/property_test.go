package draft_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/draft"
	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func cell(kind string) *rapid.Generator[string] {
	digits := rapid.StringMatching(`-?[0-9]{1,3}|-?[1-9][0-9]{12,22}|[+-]?0[0-9]{0,3}`)
	switch kind {
	case "int":
		return rapid.StringMatching(`-?[0-9]{1,20}`)
	case "decimal":
		return rapid.StringMatching(`-?[0-9]{1,8}[.,][0-9]{1,3}|[0-9]{1,18}\.[0-9]{2}|[0-9]{1,3}`)
	case "float":
		return rapid.StringMatching(`-?[0-9]\.[0-9]{1,17}|[1-9]e[+-][0-9]{2,3}|[0-9]E[0-9]|[0-9]{1,2}`)
	case "date":
		return rapid.StringMatching(`20[0-2][0-9]-0[1-9]-[0-3][0-9]|20260[1-9][0-2][0-9]`)
	case "day":
		return rapid.StringMatching(`[0-3]?[0-9]/[01]?[0-9]/(20)?2[0-9]|0[1-9]\.0[1-9]\.2026|[0-3][0-9]-[01][0-9]-2026`)
	case "time":
		return rapid.StringMatching(`2026-01-0[1-9][T ]1[0-9]:0[0-9](:[0-5][0-9](\.[0-9]{1,9})?)?(Z|\+0[0-9]:00|-0[0-9])?`)
	case "bool":
		return rapid.SampledFrom([]string{"true", "false", "TRUE", "t", "1", "0", "yes"})
	case "list":
		return rapid.SampledFrom([]string{"[]", "[1]", "[1,2]", "[1, 2]", "[1.50]", `["a"]`, `["\u00e9"]`, `["2026-01-02"]`, `["2026-01-02T03:04:05+01:00",null]`, "[[1]]", "{}", `{"b":1,"a":1.0}`, `{"a": 1}`, "[true]", "{1,2}"})
	case "uuid":
		return rapid.SampledFrom([]string{"c0ffee00-0000-4000-8000-000000000001", "C0FFEE00-0000-4000-8000-000000000001", "{c0ffee00-0000-4000-8000-000000000001}", "c0ffee00000040008000000000000001"})
	case "word":
		return rapid.SampledFrom([]string{"NA", "-", "NULL", "null", `\N`, "N/A", "none", "nan", "?", "--", ""})
	case "text":
		return rapid.StringOfN(rapid.RuneFrom([]rune("ab1, ;\t\"'\r\n.é")), 0, 6, -1)
	}
	return rapid.OneOf(digits, cell("decimal"), cell("float"), cell("date"), cell("day"), cell("time"), cell("bool"), cell("list"), cell("uuid"), cell("word"), cell("text"))
}

// column draws the values of a column; nil is a null.
func column(t *rapid.T, name string, n int) []*string {
	kind := rapid.SampledFrom([]string{"int", "decimal", "float", "date", "day", "time", "bool", "list", "uuid", "word", "text", "any"}).Draw(t, name)
	values := make([]*string, n)
	for i := range values {
		of := kind
		switch rapid.IntRange(0, 39).Draw(t, "odd") {
		case 0:
			of = "word"
		case 1:
			of = "any"
		case 2, 3, 4:
			continue
		}
		text := cell(of).Draw(t, "cell")
		values[i] = &text
	}
	return values
}

func TestEveryTextComesBackAsItWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kinds := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		n, width := rapid.IntRange(1, 8).Draw(t, "rows"), rapid.IntRange(1, 3).Draw(t, "columns")
		texts := make([]row.Field, width)
		records := make([][]row.Value, n)
		for i := range texts {
			texts[i] = row.Field{Name: fmt.Sprintf("c%d", i), Kind: row.String, Nullable: true}
			for k, text := range column(t, texts[i].Name, n) {
				v := row.Value{}
				if text != nil {
					v = row.StringValue(*text)
				}
				records[k] = append(records[k], v)
			}
		}
		delimiter := rapid.SampledFrom([]string{",", ";", "tab"}).Draw(t, "delimiter")
		path, again := filepath.Join(dir, "in.csv"), filepath.Join(dir, "again.csv")
		plain := typeOfFields(t, texts)
		writeCSV(t, path, delimiter, plain, records)
		options := draft.Options{Delimiter: delimiter}
		s, err := draft.Infer(context.Background(), path, options)
		require.NoError(t, err)
		require.Equal(t, n, s.Rows)
		fields := make([]row.Field, width)
		for i, f := range s.Fields {
			kind, ok := row.KindByName(f.Type)
			require.True(t, ok)
			kinds[f.Type]++
			fields[i] = row.Field{Name: f.Name, Kind: kind, Nullable: f.Nullable, Format: f.Format, Scale: f.Scale, DecimalSeparator: f.DecimalSeparator, Exact: true}
		}
		typed := typeOfFields(t, fields)
		writeCSV(t, again, delimiter, typed, readCSV(t, path, delimiter, typed))
		got := readCSV(t, again, delimiter, plain)
		require.Len(t, got, n)
		for i := range records {
			for k, want := range records[i] {
				have := got[i][k]
				if s.Fields[k].Type == "timestamp" && s.Fields[k].Format == "" || s.Fields[k].Type == "list of timestamp" {
					require.Equal(t, want.IsNull(), have.IsNull()) // its instant returns, which Exact has checked
					continue
				}
				require.Equal(t, want, have, "row %d, column %d: %s", i, k, s.Item(""))
			}
		}
	})
	t.Log(kinds)
	if testing.Short() { // its few cases need not have all types
		return
	}
	for _, kind := range []string{"int", "decimal", "date", "string"} {
		require.NotZero(t, kinds[kind], "%s was never inferred", kind)
	}
}

func typeOfFields(t *rapid.T, fields []row.Field) item.Type {
	schema, err := row.NewSchema(fields...)
	require.NoError(t, err)
	return item.RowOf("", schema)
}

type csvWriter interface {
	item.Opener
	item.Closer
	item.RecordWriter
	item.Finisher
	item.Releaser
}

type csvReader interface {
	item.Opener
	item.Closer
	item.RecordReader
}

func writeCSV(t *rapid.T, path, delimiter string, of item.Type, records [][]row.Value) {
	ctx := context.Background()
	out, err := testcomponent.Make[csvWriter](csv.Components(), registry.KindWriter, testcomponent.Settings{
		"path": path, "delimiter": delimiter, "header": true,
	}, registry.BuildContext{In: of})
	require.NoError(t, err)
	require.NoError(t, out.Open(ctx, nil))
	require.NoError(t, out.WriteRecords(ctx, of.Schema(), records))
	require.NoError(t, errors.Join(out.Release(ctx), out.Finish(ctx), out.Close(ctx)))
}

func readCSV(t *rapid.T, path, delimiter string, of item.Type) (records [][]row.Value) {
	ctx := context.Background()
	in, err := testcomponent.Make[csvReader](csv.Components(), registry.KindReader, testcomponent.Settings{
		"path": path, "delimiter": delimiter, "header": "exact",
	}, registry.BuildContext{Out: of})
	require.NoError(t, err)
	require.NoError(t, in.Open(ctx, nil))
	for {
		values := make([]row.Value, of.Schema().Len())
		err := in.ReadRecord(ctx, values)
		if errors.Is(err, io.EOF) {
			require.NoError(t, in.Close(ctx))
			return records
		}
		require.NoError(t, err)
		records = append(records, values)
	}
}
