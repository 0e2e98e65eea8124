package text

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// entry is an item of batches: the day comes from the file, the company from the batch.
func entry(t require.TestingT) item.Type {
	two := 2
	schema, err := row.NewSchema(
		row.Field{Name: "record", Kind: row.String}, row.Field{Name: "day", Kind: row.DateKind, Format: "yyyyMMdd"}, row.Field{Name: "company", Kind: row.String},
		row.Field{Name: "account", Kind: row.Int}, row.Field{Name: "amount", Kind: row.DecimalKind, Scale: &two, Nullable: true}, row.Field{Name: "note", Kind: row.String, Nullable: true},
	)
	require.NoError(t, err)
	return item.RowOf("entry", schema)
}

func batches() map[string]recordType {
	two := 2
	return map[string]recordType{
		"F":  {As: "header", Columns: map[string]columnConfig{"day": {At: "2-9"}}},
		"B":  {As: "header", Of: "F", Columns: map[string]columnConfig{"company": {At: "2-7"}}},
		"D":  {Columns: map[string]columnConfig{"account": {At: "2-5", Pad: "0"}, "amount": {At: "6-11", Decimals: &two}}},
		"DX": {Columns: map[string]columnConfig{"account": {At: "3-6"}, "note": {At: "7-12"}}},
		"E":  {As: "trailer", Of: "B", Count: "2-4", Sums: map[string]columnConfig{"amount": {At: "5-12"}}},
		"Z":  {As: "trailer", Count: "2-4", CountOf: []string{"F", "B", "D", "DX", "E", "Z"}, Sums: map[string]columnConfig{"amount": {At: "5-12"}}},
		"#":  {As: "ignore"},
	}
}

func batchConfig(path string) fixedReaderConfig {
	return fixedReaderConfig{Path: path, Records: batches()}
}

const batchFile = "F20261120\n" +
	"# two companies\n" +
	"BACME  \n" +
	"D0007 12.50\n" +
	"D0008-00005\n" +
	"DX0008late  \n" +
	"E003    0000\n" +
	"BZoë   \n" +
	"D0009    10\n" +
	"E00100000010\n" +
	"Z01000000010\n" +
	"\n# the end\n"

func right() string {
	return strings.NewReplacer("D0007 12.50", "D0007  1250", "E003    0000", "E003    1245", "Z01000000010", "Z01000001255").Replace(batchFile)
}

func batchReader(t testing.TB, content string) item.Reader {
	t.Helper()
	r, err := newFixedReader(batchConfig(fileOf(t, content)), entry(t))
	require.NoError(t, err)
	return r
}

func TestDetailsHaveTheValuesOfTheHeadersAboveThem(t *testing.T) {
	t.Parallel()
	all, end := outcomes(t, batchReader(t, right()))
	require.ErrorIs(t, end, io.EOF)
	require.Equal(t, []string{
		"D 2026-11-20 ACME 7 12.50 null", "D 2026-11-20 ACME 8 -0.05 null", "DX 2026-11-20 ACME 8 null late", "D 2026-11-20 Zoë 9 0.10 null",
	}, all)
}

func TestRecordTypesKeepTheContract(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"right": right(), "bad amounts": strings.Replace(strings.Replace(right(), "D0009    10", "D000x    10", 1), "D0007  1250", "D00O7  1250", 1)} {
		t.Run(name, func(t *testing.T) {
			path := fileOf(t, content)
			itemtest.Reader(t, itemtest.ReaderConfig{Source: path, New: func(t testing.TB) item.Reader {
				r, err := newFixedReader(batchConfig(path), entry(t))
				require.NoError(t, err)
				return r
			}})
		})
	}
}

func TestATrailerThatDoesNotAgreeFailsBeforeTheLastItem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		old, new, want string
		items          int
	}{
		{"E003    1245", "E003    1246", "in.txt:7: the trailer E says that the total of amount is 12.46, but the records have 12.45: the part after the header B of line 3 is incomplete", 2},
		{"E003", "E004", "in.txt:7: the trailer E says 4 records, but the part after the header B of line 3 has 3", 2},
		{"E003    1245\n", "", "in.txt:7: the part after the header B of line 3 has no trailer E after 3 records", 3},
		{"Z01000001255", "Z01100001255", "in.txt:11: the trailer Z says 11 records, but the file has 10", 3},
		{"Z01000001255", "Z01000001256", "the trailer Z says that the total of amount is 12.56, but the records have 12.55: the file is incomplete", 3},
		{"Z01000001255\n", "", "the file has no trailer Z after 9 records", 3},
		{"E00100000010\n", "", "in.txt:10: the part after the header B of line 8 has no trailer E after 1 records", 3},
		{"\n# the end\n", "D0009    10\n", "in.txt:12: the file continues after its trailer", 4},
		{"\n# the end\n", "Q\n", "in.txt:12: the file continues after its trailer", 4},
		{"BACME  \n", "", "in.txt:3: the record D has no header B before it, but the trailer E counts it", 0},
		{"F20261120\n", "", "in.txt:2: the header B has no header F before it", 0},
		{"F20261120\n", "F20261x20\n", "in.txt:1: characters 2-9: field day: \"20261x20\" is not a date", 0},
		{"F20261120\n", "F2026\n", "in.txt:1: the line has 5 characters, but its columns need 9", 0},
		{"D0008-00005", "D0008-00O05", "in.txt:7: the sum of amount cannot be checked: it is unreadable in 1 records", 2},
		{"D0008-00005", "Q0008-00005", "in.txt:7: the sum of amount cannot be checked", 2},
		{"E003    1245", "Ex03    1245", "the trailer E has no number of records at 2-4 (count): \"x03\"", 2},
		{"E003    1245", "E003        ", "the trailer E has no sum of amount at 5-12: \"        \": it is blank", 2},
	} {
		require.Contains(t, right(), c.old)
		all, end := outcomes(t, batchReader(t, strings.Replace(right(), c.old, c.new, 1)))
		require.ErrorContains(t, end, c.want)
		require.Len(t, all, c.items, "%v", all)
	}
}

func TestARecordOfNoTypeIsInvalid(t *testing.T) {
	t.Parallel()
	cfg := batchConfig(fileOf(t, "F20261120\nQ1\nD0007  1250\n"))
	cfg.Records = map[string]recordType{"F": cfg.Records["F"], "D": {Columns: map[string]columnConfig{"account": {At: "2-5"}, "company": {At: "6-11"}}}}
	r, err := newFixedReader(cfg, entry(t))
	require.NoError(t, err)
	all, end := outcomes(t, r)
	require.ErrorIs(t, end, io.EOF)
	require.Equal(t, []string{`!` + cfg.Path + `:2: the record begins with "Q", but records has D, F; "*": {as: ignore} skips all others`, "D 2026-11-20   1250 7 null null"}, all)

	cfg.Records["*"], cfg.TypeAt = recordType{As: "ignore"}, "1-1"
	r, err = newFixedReader(cfg, entry(t))
	require.NoError(t, err)
	all, _ = outcomes(t, r)
	require.Equal(t, []string{"D 2026-11-20   1250 7 null null"}, all)

	delete(cfg.Records, "*")
	cfg.Path = fileOf(t, "D0007  1250\nQ\n")
	r, err = newFixedReader(cfg, entry(t))
	require.NoError(t, err)
	all, _ = outcomes(t, r)
	require.Contains(t, all[0], "in.txt:1: there is no header F before it, but the field day needs a value")
	require.Contains(t, all[1], `in.txt:2: the record is of the type "Q" (type_at), but records has D, F`)
}

func TestADetailIsRedrivenWithItsHeaders(t *testing.T) {
	t.Parallel()
	r := batchReader(t, strings.Replace(right(), "D0009    10", "D000x    10", 1))
	c := r.Component().(*reader)
	require.NoError(t, c.Open(t.Context(), nil))
	require.NoError(t, r.Fill(t.Context(), r.NewItems(3), 3))
	require.ErrorContains(t, r.Fill(t.Context(), r.NewItems(1), 1), "in.txt:9: characters 2-5: field account")
	raw := c.RawText()
	require.NoError(t, c.Close(t.Context()))
	require.ElementsMatch(t, []string{"F=F20261120", "B=BZoë   "}, raw.Heads)
	require.Empty(t, raw.Hidden().Heads)
	raw.Text = "D0010    10"
	require.NoError(t, c.OpenRaw(t.Context(), item.Meta{Path: "gone.txt", Line: 9}, raw))
	items := r.NewItems(1)
	require.NoError(t, r.Fill(t.Context(), items, 1))
	require.Equal(t, "D 2026-11-20 Zoë 10 0.10 null", texts(items.At(0)))
	require.ErrorIs(t, r.Fill(t.Context(), r.NewItems(1), 1), io.EOF)
	raw.Text = "Z01000001255"
	require.NoError(t, c.OpenRaw(t.Context(), item.Meta{Path: "gone.txt", Line: 9}, raw))
	require.ErrorContains(t, r.Fill(t.Context(), r.NewItems(1), 1), "gone.txt:9: the line is a trailer, not an item")
}

func TestRandomBatchesAreReadAsTheyWereMade(t *testing.T) {
	t.Parallel()
	path := fileOf(t, "")
	rapid.Check(t, func(rt *rapid.T) {
		content, want := randomBatches(rt)
		require.NoError(rt, os.WriteFile(path, []byte(content), 0o600))
		open := func(at item.Position) reading {
			r, err := newFixedReader(batchConfig(path), entry(rt))
			require.NoError(rt, err)
			require.NoError(rt, r.Component().(item.Opener).Open(t.Context(), at))
			defer func() { require.NoError(rt, r.Component().(item.Closer).Close(t.Context())) }()
			return readOn(t, r)
		}
		whole := open(nil)
		require.Equal(rt, append(want, "EOF"), whole.texts, content)
		for i, at := range whole.at {
			require.Equal(rt, whole.texts[i+1:], open(at).texts)
		}
	})
}

func randomBatches(t *rapid.T) (content string, want []string) {
	var b strings.Builder
	all, records := int64(0), 1
	line := func(format string, args ...any) {
		fmt.Fprintf(&b, format, args...)
		b.WriteString(rapid.SampledFrom([]string{"\n", "\r\n", "\n\n", "\n#\n"}).Draw(t, "end"))
	}
	line("F20261120")
	for n := range rapid.IntRange(0, 4).Draw(t, "batches") {
		company := fmt.Sprintf("C%d", n)
		line("B%-6s", company)
		sum, count := int64(0), rapid.IntRange(0, 5).Draw(t, "details")
		for range count {
			account := rapid.IntRange(0, 9999).Draw(t, "account")
			if rapid.Bool().Draw(t, "note") {
				line("DX%4d%-6s", account, "note")
				want = append(want, fmt.Sprintf("DX 2026-11-20 %s %d null note", company, account))
				continue
			}
			cents := rapid.Int64Range(-99999, 999999).Draw(t, "cents")
			line("D%04d%6d", account, cents)
			d, err := row.NewDecimal(cents, 2)
			require.NoError(t, err)
			want = append(want, fmt.Sprintf("D 2026-11-20 %s %d %s null", company, account, d))
			sum += cents
		}
		line("E%03d%8d", count, sum)
		all, records = all+sum, records+count+2
	}
	line("Z%03d%8d", records+1, all)
	return b.String(), want
}

func TestRecordTypesAreChecked(t *testing.T) {
	t.Parallel()
	with := func(c *fixedReaderConfig, name string, change func(*recordType)) {
		kind := c.Records[name]
		change(&kind)
		c.Records[name] = kind
	}
	for want, change := range map[string]func(*fixedReaderConfig){
		"columns: each record type has its own columns":   func(c *fixedReaderConfig) { c.Columns = columns() },
		"trailer: a trailer is a type of records":         func(c *fixedReaderConfig) { c.Trailer = &trailerConfig{Begins: "T"} },
		"record: records defines what records begin with": func(c *fixedReaderConfig) { c.Record = "D" },
		"type_at: \"x\" is not FIRST-LAST":                func(c *fixedReaderConfig) { c.TypeAt = "x" },
		"records.D: columns: the field company of the item has no column": func(c *fixedReaderConfig) {
			with(c, "B", func(k *recordType) { delete(k.Columns, "company"); k.Columns["note"] = columnConfig{At: "9-9"} })
		},
		"records.D.columns.amont: the item has no field amont (did you mean": func(c *fixedReaderConfig) {
			with(c, "D", func(k *recordType) { k.Columns["amont"] = columnConfig{At: "30"} })
		},
		`records.D.columns.account: it begins at 1, inside the text "D"`: func(c *fixedReaderConfig) {
			with(c, "D", func(k *recordType) { k.Columns["account"] = columnConfig{At: "1-5"} })
		},
		"records.E.of: D is not a header of this file (as: header)":           func(c *fixedReaderConfig) { with(c, "E", func(k *recordType) { k.Of = "D" }) },
		"records.E: of: there are two trailers of the same records":           func(c *fixedReaderConfig) { with(c, "E", func(k *recordType) { k.Of = "" }) },
		"records.E.count_of: Q is not a record type that can be counted here": func(c *fixedReaderConfig) { with(c, "E", func(k *recordType) { k.CountOf = []string{"Q"} }) },
		"records.E.sums.note: the field is a string; exact sums need int or": func(c *fixedReaderConfig) {
			with(c, "E", func(k *recordType) { k.Sums["note"] = columnConfig{At: "14-20"} })
		},
		"records.E.sums.amont: no detail has a column amont (did you mean amount": func(c *fixedReaderConfig) {
			with(c, "E", func(k *recordType) { k.Sums["amont"] = columnConfig{At: "14-20"} })
		},
		`records.E.columns: it needs a detail or a header, but this type is "tra`: func(c *fixedReaderConfig) { with(c, "E", func(k *recordType) { k.Columns = columns() }) },
		`records.#.count: it needs a trailer, but this type is "ignore" (as)`:     func(c *fixedReaderConfig) { with(c, "#", func(k *recordType) { k.Count = "1-2" }) },
		"records.#.columns: a detail needs them":                                  func(c *fixedReaderConfig) { with(c, "#", func(k *recordType) { k.As = "" }) },
		"records.F: of: F belongs to itself":                                      func(c *fixedReaderConfig) { with(c, "F", func(k *recordType) { k.Of = "B" }) },
	} {
		cfg := batchConfig("in.txt")
		change(&cfg)
		_, err := newFixedReader(cfg, entry(t))
		require.ErrorContains(t, err, want)
	}
	cfg := batchConfig("in.txt")
	cfg.Records = nil
	_, err := newFixedReader(cfg, entry(t))
	require.ErrorContains(t, err, "columns: the positions of the fields are missing")
	cfg.Columns, cfg.TypeAt = columns(), "1"
	_, err = newFixedReader(cfg, entry(t))
	require.ErrorContains(t, err, "type_at: it applies to records, but there are none")
}

func TestHeadersFitIntoThePosition(t *testing.T) {
	t.Parallel()
	schema, err := row.NewSchema(row.Field{Name: "a", Kind: row.String}, row.Field{Name: "x", Kind: row.String})
	require.NoError(t, err)
	cfg := fixedReaderConfig{Path: fileOf(t, "H"+strings.Repeat("x", 5000)+"\nDy\n"), Records: map[string]recordType{
		"H": {As: "header", Columns: map[string]columnConfig{"a": {At: "2-5001"}}}, "D": {Columns: map[string]columnConfig{"x": {At: "2"}}},
	}}
	r, err := newFixedReader(cfg, item.RowOf("wide", schema))
	require.NoError(t, err)
	_, end := outcomes(t, r)
	require.ErrorContains(t, end, "in.txt:1: the headers have 5001 bytes up to their last columns, but a position has room for only 3072")
}
