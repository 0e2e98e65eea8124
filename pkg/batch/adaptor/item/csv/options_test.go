package csv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func contract(t *testing.T, cfg readerConfig, itemType item.Type) {
	t.Helper()
	itemtest.Reader(t, itemtest.ReaderConfig{New: func(t testing.TB) item.Reader {
		r, err := newReader(cfg, itemType)
		require.NoError(t, err)
		return r
	}})
}

func TestLinesBeforeAndAfterTheRecordsAreNotRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		content string
		cfg     readerConfig
		want    []string
	}{
		{"Report of\n\"May\n\na,b\n1,2\n\n3,\"x\ny\"\nTotal: 2\nEnd\n", readerConfig{Header: headerExact, SkipLines: 3, FooterLines: 2}, []string{"1|2", "3|x\ny"}},
		{"a,b\r\n1,2\r\n3,4\r\nsum,6\r\n\r\n\r\n", readerConfig{Header: headerExact, FooterLines: 1}, []string{"1|2", "3|4"}},
		{"a,b\r1,2\r3,4\rsum,6\r", readerConfig{Header: headerExact, FooterLines: 1}, []string{"1|2", "3|4"}},
		{"x\n1,2\n3,4\nsum", readerConfig{SkipLines: 1, FooterLines: 1}, []string{"1|2", "3|4"}},
		{"a,b\nsum,0\n", readerConfig{Header: headerExact, FooterLines: 1}, nil},
		{"a,b\n1,2\n3,4\nsum,6\n \t\n  ", readerConfig{Header: headerExact, FooterLines: 1}, []string{"1|2", "3|4"}},
		{"a,b\n1,2\n#x\n3,4\nsum,6\n\n#x\nend\n#x\n  \n# y", readerConfig{Header: headerExact, FooterLines: 2, Comment: "#"}, []string{"1|2", "3|4"}},
		{"a,b\n1,2\n3,4\n#x\n", readerConfig{Header: headerExact, FooterLines: 1}, []string{"1|2", "3|4"}},
		{"a\tb\n1\t2\n3\t4\n \t\n  \n", readerConfig{Header: headerExact, FooterLines: 1, Delimiter: "\\t"}, []string{"1|2", "3|4"}},
		{"a b\n1 2\n3 4\nsum 6\n \t\n  \n", readerConfig{Header: headerExact, FooterLines: 1, Delimiter: "blanks"}, []string{"1|2", "3|4"}},
		{"a,b\n1,2\nx,\"open\nsum,0\n", readerConfig{Header: headerExact, FooterLines: 1}, []string{"1|2", `!:3: character 9: extraneous or missing " in quoted-field`}},
	} {
		for _, name := range []string{"in.csv", "in.csv.gz"} {
			c.cfg.Path = file(t, name, c.content)
			if name != "in.csv" {
				c.cfg.Path = file(t, name, zip(t, c.content))
			}
			require.Equal(t, c.want, outcomes(t, c.cfg, nil, nil), "%q", c.content)
			if len(c.want) > 1 {
				contract(t, c.cfg, nil)
			}
		}
	}
	r, err := newReader(readerConfig{Path: file(t, "in.csv", "a,b\n"), Header: headerExact, FooterLines: 1}, nil)
	require.NoError(t, err)
	require.ErrorContains(t, r.Component().(item.Opener).Open(t.Context(), nil), "its first line must name the columns")
	one := schema(t, row.Field{Name: "a", Kind: row.String, Nullable: true})
	for _, after := range []string{"", "\n", "\n\n", "\n \n", "  "} {
		cfg := readerConfig{Path: file(t, "in.csv", "a\nx\n\nTotal\n"+after), Header: headerExact, FooterLines: 1}
		require.Equal(t, []string{"x", "null"}, outcomes(t, cfg, one, nil), "%q after the footer", after)
		contract(t, cfg, one)
	}
}

// TestAFooterIsNeverARecordWhereverAReadingBegins reads files that are longer than a buffer.
func TestAFooterIsNeverARecordWhereverAReadingBegins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	none := []string{"", "\n", "\n\n", "  \n", "#" + strings.Repeat("c", 40_000) + "\n", strings.Repeat(" ", 40_000) + "\n"}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		text.WriteString("k\n")
		var want []string
		for i := range rapid.IntRange(0, 12).Draw(t, "records") {
			value := fmt.Sprint(i) + strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 20_000, 70_000}).Draw(t, "length"))
			if rapid.Bool().Draw(t, "lines") {
				value = value + "\n" + value
			}
			want = append(want, value)
			text.WriteString("\"" + value + "\"\n" + strings.Repeat("\n", rapid.IntRange(0, 1).Draw(t, "empty")))
		}
		footer := rapid.IntRange(1, 4).Draw(t, "footer")
		for i := range footer {
			text.WriteString("end" + strings.Repeat(" ", 30_000*(i%2)) + "\n" + rapid.SampledFrom(none).Draw(t, "after"))
		}
		path := filepath.Join(dir, "in.csv")
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
		cfg := readerConfig{Path: path, Header: headerExact, FooterLines: footer, Comment: "#"}
		got, at := walk(t, cfg, nil)
		require.Equal(t, append([]string{}, want...), append([]string{}, got...))
		restarts(t, cfg, got, at)
	})
}

func TestAMessageNamesTheQuoteThatTheFileHas(t *testing.T) {
	t.Parallel()
	cfg := readerConfig{Path: file(t, "in.csv", "a'b,1\n'a'b,1\n'a"), Quote: "'", Columns: 2}
	require.Equal(t, []string{
		"!:1: character 2: bare ' in non-quoted-field (lazy_quotes: true accepts it as text)",
		"!:2: character 3: extraneous or missing ' in quoted-field (lazy_quotes: true accepts it as text)",
		"!:3: character 3: extraneous or missing ' in quoted-field",
	}, outcomes(t, cfg, nil, nil))
}

func TestAFirstLineSaysTheDelimiter(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"sep=;\r\n", "\"sep=;\"\n", "SEP=;\n", "\xEF\xBB\xBFsep=;\n"} {
		cfg := readerConfig{Path: file(t, "in.csv", first+"a;b\n1;2,5\nx;y;z\n3;\"4;5\"\n"), Header: headerExact}
		want := []string{"1|2,5", "!:4: the record has 3 fields, not 2", "3|4;5"}
		require.Equal(t, want, outcomes(t, cfg, nil, nil))
		contract(t, cfg, nil)
		cfg.SkipLines = 1
		require.Equal(t, want, outcomes(t, cfg, nil, nil), "it is one of the lines")
		cfg.Delimiter = "|"
		r, err := newReader(cfg, nil)
		require.NoError(t, err)
		require.ErrorContains(t, r.Component().(item.Opener).Open(t.Context(), nil), `in.csv:1: the first line, sep=;, sets the delimiter to ";", but the key delimiter is "|"`)
	}
	require.Equal(t, []string{"1|2"}, outcomes(t, readerConfig{Path: file(t, "in.csv", "sep=,b\n1,2\n"), Header: headerExact}, nil, nil))
}

func TestFieldsAreBetweenOtherCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		content string
		cfg     readerConfig
		want    []string
	}{
		{"a||b\n1||2|3\n\"x||y\"||\n", readerConfig{Delimiter: "||"}, []string{"1|2|3", "x||y|"}},
		{"a  b\tc\n\n  1 2\t\t 3  \n \t\n\"x y\"  \"\" \"z\nz\"   \n4 5\n", readerConfig{Delimiter: "blanks"}, []string{"1|2|3", "x y||z\nz", "!:7: the record has 2 fields, not 3"}},
		{"a,b\n'it''s, \"x\"','\n'\n", readerConfig{Quote: "'"}, []string{"it's, \"x\"|\n"}},
		{"a\tb\n\"x\t5\" pipe\n", readerConfig{Delimiter: "tab", Quote: "none"}, []string{"\"x|5\" pipe"}},
		{"a,b\n\"say \\\"hi\\\", ok\",\"c:\\\\dir\\\\\"\n\"a\\n\"\"b\",\\N\n", readerConfig{Escape: `\`}, []string{`say "hi", ok|c:\dir\`, `a\n"b|\N`}},
		{"a,b\n\"say \\\"hi\",2\nx\"y,3\n\"x\"y,4\n", readerConfig{}, []string{
			`!:2: character 7: extraneous or missing " in quoted-field (if \ escapes a quote, set escape: '\')`,
			`!:3: character 2: bare " in non-quoted-field (lazy_quotes: true accepts it as text)`,
			`!:4: character 3: extraneous or missing " in quoted-field (lazy_quotes: true accepts it as text)`,
		}},
	} {
		c.cfg.Path, c.cfg.Header = file(t, "in.csv", c.content), headerExact
		require.Equal(t, c.want, outcomes(t, c.cfg, nil, nil), "%q", c.content)
		contract(t, c.cfg, nil)
	}
}

func TestOtherQuotesAndDelimitersAreReadBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		itemType := item.RowOf("", must(row.NewSchema(row.Field{Name: "a", Kind: row.String, Nullable: true}, row.Field{Name: "b", Kind: row.String})))
		w := writerConfig{
			Path: filepath.Join(dir, "x.csv"), Header: true, Delimiter: rapid.SampledFrom([]string{",", "||", "=>", "§", "é|", "tab"}).Draw(t, "delimiter"),
			Quote: rapid.SampledFrom([]string{"minimal", "all", "'", "$"}).Draw(t, "quote"), QuoteAll: rapid.Bool().Draw(t, "all"),
			Escape: rapid.SampledFrom([]string{"", `\`, "^"}).Draw(t, "escape"), Nulls: rapid.SampledFrom([]string{"", `\N`}).Draw(t, "nulls"),
		}
		rows := make([][]row.Value, rapid.IntRange(0, 5).Draw(t, "rows"))
		for i, texts := range recordsOf(t, len(rows), "a|=>§é\\^'$\"\r\n ,N") {
			if i < len(rows) {
				rows[i] = []row.Value{row.StringValue(strings.Join(texts, "")), row.StringValue(fmt.Sprint(texts))}
			}
		}
		for i := range rows {
			if rows[i] == nil {
				rows[i] = []row.Value{{}, row.StringValue("")}
			}
		}
		written := writeRows(t, w, itemType, rows)
		cfg := readerConfig{Path: w.Path, Header: headerExact, Delimiter: w.Delimiter, Escape: w.Escape}
		if w.Quote != "minimal" && w.Quote != "all" {
			cfg.Quote = w.Quote
		}
		if w.Nulls != "" {
			cfg.Nulls = []string{w.Nulls}
		}
		r, err := newReader(cfg, itemType)
		require.NoError(t, err)
		require.NoError(t, r.Component().(item.Opener).Open(context.Background(), nil))
		items := r.NewItems(len(rows) + 1)
		require.Error(t, r.Fill(context.Background(), items, len(rows)+1))
		require.Equal(t, len(rows), items.Len(), "%q", written)
		for i := range rows {
			require.Equal(t, rows[i], items.At(i).(item.Row).Values(), "%q", written)
		}
		require.NoError(t, r.Component().(item.Closer).Close(context.Background()))
	})
}

func TestRecordsOfOtherWidthsAreTakenByChoice(t *testing.T) {
	t.Parallel()
	itemType := schema(t, row.Field{Name: "a", Kind: row.Int}, row.Field{Name: "b", Kind: row.String, Nullable: true}, row.Field{Name: "c", Kind: row.Int, Default: row.IntValue(9)})
	content := "a,b,c\n1\n2,x\n3,x,4\n5,x,6,7,8\n"
	cfg := readerConfig{Path: file(t, "in.csv", content), Header: headerExact, Short: "null", Long: "ignore"}
	require.Equal(t, []string{"1|null|9", "2|x|9", "3|x|4", "5|x|6"}, outcomes(t, cfg, itemType, nil))
	contract(t, cfg, itemType)
	cfg.Short = "error"
	require.Equal(t, []string{"!:2: the record has 1 fields, not 3", "!:3: the record has 2 fields, not 3", "3|x|4", "5|x|6"}, outcomes(t, cfg, itemType, nil))
	cfg.Header, cfg.Short, cfg.Path = headerNone, "null", file(t, "in.csv", content[6:])
	require.Equal(t, []string{"1|null|9", "2|x|9", "3|x|4", "5|x|6"}, outcomes(t, cfg, itemType, nil))
	contract(t, cfg, itemType)
	plain := schema(t, row.Field{Name: "a", Kind: row.Int}, row.Field{Name: "b", Kind: row.String})
	require.Equal(t, "!:1: the record has 1 fields, not 2: field b: null is not a string (the field is not nullable)", outcomes(t, readerConfig{Path: cfg.Path, Columns: 2, Short: "null"}, plain, nil)[0])
}

func TestColumnsThatTheItemLacksAreReportedByChoice(t *testing.T) {
	t.Parallel()
	itemType := schema(t, row.Field{Name: "id", Kind: row.Int})
	cfg := readerConfig{Path: file(t, "in.csv", "id,new,é\n1,2,3\n"), Header: headerExact, Unknown: "error"}
	r, err := newReader(cfg, itemType)
	require.NoError(t, err)
	require.EqualError(t, r.Component().(item.Opener).Open(t.Context(), nil), "csv: "+cfg.Path+`: the item has no field for the columns "new", "é" (set unknown: ignore to leave them out)`)
	stored := core.NewExecutionContext()
	cfg.Unknown = "warn"
	made, err := Components()[0].New(t.Context(), &cfg, registry.BuildContext{Out: itemType, StepContext: func() *core.ExecutionContext { return stored }})
	require.NoError(t, err)
	require.NoError(t, made.(item.Reader).Component().(item.Opener).Open(t.Context(), nil))
	warned := core.StepExecution{Context: stored}.Warnings()
	require.Equal(t, []string{cfg.Path + `: columns not read, because the item has no field for them: "new", "é"`}, warned)
	require.Equal(t, []string{"1"}, outcomes(t, cfg, itemType, nil))
}

func TestOptionsThatMeanNothingAreRefused(t *testing.T) {
	t.Parallel()
	err := (&readerConfig{Delimiter: `\s+`, Quote: "ab", SkipLines: -1, FooterLines: -1, Unknown: "warn"}).Validate()
	for _, want := range []string{`delimiter: "\\s+" is a pattern: for runs of spaces and tabs write blanks`, `quote: "ab" is not allowed here`, "skip_lines: it is negative", "footer_lines: it is negative", "unknown: it applies to the columns of a header"} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, (&readerConfig{Quote: "none", Escape: `\`}).Validate(), "escape: without quotes there is nothing to escape")
	require.ErrorContains(t, (&readerConfig{Delimiter: "|'", Quote: "'", Comment: "|"}).Validate(), "quote: the delimiter contains it, too")
	require.ErrorContains(t, (&writerConfig{Delimiter: "blanks"}).Validate(), "delimiter: blanks is for readers only")
	require.ErrorContains(t, (&writerConfig{Quote: "some"}).Validate(), "(allowed: minimal, all, or a character)")
}
