package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestMistakesInTheKeysOfCsvAreNamedWithTheirCures(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"job.yaml": `job: options
flow:
- step: read
  chunk:
    reader:
      csv: {path: in.csv, columns: 3, header: exactly, delimiter: '\s+', quote: ab, footer_lines: -1, short: nul, item: {id: int, b: {type: int, true: [Y]}}}
    writer: {csv: {path: out.csv, delimiter: semicolon, nulls: "a,b"}}
- step: columns
  chunk:
    reader: {csv: {path: in.csv, columns: 3, quote: ab, delimiter: semicolon, skip_lines: -1}}
    writer: {csv: {path: out2.csv, quote: some, nulls: "a,b"}}
`})
	code, out := s.run("validate", "job.yaml")
	require.Equal(t, 2, code, out)
	for _, want := range []string{
		`header: "exactly" is not allowed`, "did you mean exact?", `short: "nul" is not allowed`, "did you mean null?",
		"true and false are words for a bool, not for int", `delimiter: "semicolon" is a word: write the character itself, tab or blanks`,
		"columns: the header determines how many fields a record has: columns needs header: false", `quote: "ab" is not allowed here`, "skip_lines: it is negative",
		`quote: "some" is not allowed here: write one ASCII character that is not a letter, digit or blank (allowed: minimal, all, or a character)`,
		`nulls: a null is written without quotes: "a,b" contains a delimiter, a quote or a line end`,
	} {
		require.Contains(t, out, want)
	}
}

func TestAReportFromASpreadsheetIsLoadedAndItsBadLineRedriven(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{
			"in.csv": "sep=;\r\nReport\r\n ID ;Name;NOTE;paid;amount;x\r\n1;\"\";;Ja;1\u00a0234,50-;\r\n2;;\"two\r\nlines\";Nein;5\r\nz;a;b;Ja;1;\r\nTotal;3\r\n\r\n",
			"job.yaml": `job: report
flow:
- step: load
  chunk:
    reader:
      csv:
        path: in.csv
        skip_lines: 2
        footer_lines: 1
        header: loose
        short: "null"
        unknown: warn
        item:
          id: int
          name: string null
          note: string null
          paid: {type: bool, true: [Ja], false: [Nein]}
          amount: {type: decimal, decimal_separator: ",", thousands_separator: " ", trailing_minus: true}
    writer: {table: {name: report, key: [id], create: true}}
    skip: 1
`})
		code, out := s.run("run", "job.yaml")
		require.Equal(t, 0, code, out)
		require.Contains(t, out, "columns not read")
		require.NoError(t, os.Remove(filepath.Join(s.dir, "in.csv")))
		require.Contains(t, s.said("skips", "export", "1", "--out", "fixed.jsonl"), "")
		fixed := filepath.Join(s.dir, "fixed.jsonl")
		text, err := os.ReadFile(fixed)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(fixed, []byte(strings.Replace(string(text), "z;a;b", "3;a;b", 1)), 0o600))
		require.Contains(t, s.said("skips", "redrive", "1", "--from", "fixed.jsonl"), "written=1")
		db, _ := s.open()
		require.Equal(t, []int64{3, 1, 1, 1, 1}, s.ints(db, `select count(*), count(case when name = '' then 1 end), count(case when note is null then 1 end),
			count(case when name is null then 1 end), count(case when amount = -1234.50 and paid then 1 end) from report`, 5))
	})
}
