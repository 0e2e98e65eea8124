package draft_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/draft"
)

func typeOf(t *testing.T, values ...string) (spec, note string) {
	t.Helper()
	s := inferred(t, "in.tsv", "v\n"+strings.Join(values, "\n")+"\n")
	spec, _, _ = strings.Cut(strings.TrimSuffix(s.Item(""), "\n"), "  # ")
	return strings.TrimPrefix(spec, "v: "), s.Fields[0].Note
}

// Rule D14.
func TestATypeReturnsEveryTextThatWasSeen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ values, want string }{
		{"1 22 -3", "int"},
		{"1 007", "string"},
		{"+1 2", "string"},
		{"-0 2", "string"},
		{"89014103211118510720 1", "string"},
		{"9223372036854775807 1", "int"},
		{"1E5 2", "string"},
		{"1.10 2.20", "{type: decimal, scale: 2}"},
		{"1.9 1.10", "string"},
		{"1.0 2.25 3", "decimal"},
		{"1 2.5", "decimal"},
		{".5 1", "string"},
		{"1234567890123.123456", "string"},
		{"0.1234567890123456", "float"},
		{"1e+300 0.5", "float"},
		{"1,5 2,25", `{type: decimal, decimal_separator: ","}`},
		{"1,500 2,250", "string"},
		{"true false", "bool"},
		{"TRUE FALSE", "string"},
		{"2026-01-02 2026-02-30", "string"},
		{"2026-01-02 2026-02-28", "date"},
		{"01/02/2026 03/04/2026", "string"},
		{"01/02/2026 25/12/2026", "{type: date, format: dd/MM/yyyy}"},
		{"01/02/2026 12/25/2026", "{type: date, format: MM/dd/yyyy}"},
		{"1/2/2026 25/12/2026", "{type: date, format: d/M/yyyy}"},
		{"24.12.2026 01.02.2026", "{type: date, format: dd.MM.yyyy}"},
		{"2026-01-02T03:04:05Z 2026-01-02T03:04:05.5+01:00", "timestamp"},
		{"2026-01-02T03:04:05.1234567Z", "string"},
		{"2026-01-02T03:04:05", `{type: timestamp, format: "yyyy-MM-ddTHH:mm:ss"}`},
		{"c0ffee00-0000-4000-8000-000000000001", "uuid"},
		{"C0FFEE00-0000-4000-8000-000000000001", "string"},
		{`[1,2] []`, "list of int"},
		{`{"a":1} [{}]`, "json"},
		{"0000-01-01 2026-01-02", "string"},
		{"2026-01-02 0000-01-01", "string"},
		{"0000-01-01T00:00:00Z", "string"},
		{"0001-01-01 9999-12-31", "date"},
		{"NA 1", "string"},
		{"NA - 1", "string"},
		{"NULL", "string"},
		{"x NULL", "string"},
	} {
		spec, note := typeOf(t, strings.Fields(c.values)...)
		require.Equal(t, c.want, spec, "%s (%s)", c.values, note)
	}
	_, note := typeOf(t, "01/02/2026", "03/04/2026")
	require.Contains(t, note, "dd/MM/yyyy or MM/dd/yyyy")
	_, note = typeOf(t, "5", "12", "many")
	require.Equal(t, `not int: line 4 has "many"`, note)
	_, note = typeOf(t, "5", "NA")
	require.Equal(t, `int, except for "NA": null_if: [NA] reads it as null`, note)
	_, note = typeOf(t, "5", "NA", "-")
	require.Contains(t, note, `int, except for "-", "NA": null_if: ["-", NA]`)
	require.Equal(t, "v: list of string\n", inferred(t, "in.jsonl", `{"v":["2026-01-02","0000-01-01"]}`).Item(""))
	_, note = typeOf(t, "x", "a\x00b")
	require.Equal(t, "line 3 has a NUL, which no table accepts", note)
	require.Equal(t, note, strings.Replace(inferred(t, "in.jsonl", `{"v":"a\u0000"}`).Fields[0].Note, "line 1", "line 3", 1))
	spec, _ := typeOf(t, " 5", "6")
	require.Equal(t, "string", spec, "blanks are not kept by an int")
}

func TestNumbersOfJSONComeBackAsTheSameNumbers(t *testing.T) {
	t.Parallel()
	s := inferred(t, "in.jsonl", `{"id":12345678901234567891,"e":1E5,"d":1.5,"s":"12","b":true,"t":"2026-01-02T03:04:05Z","m":1,"o":{}}
{"id":1,"e":2,"d":2,"s":"13","b":false,"t":"2026-01-02T03:04:06Z","m":"1","o":{"x":1}}
`)
	kinds := map[string]string{}
	for _, f := range s.Fields {
		kinds[f.Name] = f.Type
	}
	require.Equal(t, map[string]string{"id": "json", "e": "json", "d": "decimal", "s": "string", "b": "bool", "t": "timestamp", "m": "json", "o": "json"}, kinds)
}

func TestAllOfASmallFileIsLookedAt(t *testing.T) {
	t.Parallel()
	var csv, lines strings.Builder
	csv.WriteString("id,code\n")
	for i := range 30_000 {
		fmt.Fprintf(&csv, "%d,%d\n", i, 100_000+i)
		fmt.Fprintf(&lines, `{"id":%d}`+"\n", i)
	}
	s := inferred(t, "in.csv", csv.String()+"30000,00001\n")
	require.Equal(t, "string", s.Fields[1].Type)
	require.Contains(t, s.Summary(), "all 30,001 rows")
	s = inferred(t, "in.jsonl", lines.String()+`{"id":1,"refund":2}`+"\n")
	require.Len(t, s.Fields, 2)
	require.Equal(t, 30_000, s.Fields[1].Nulls)

	s = inferredWith(t, "in.csv", csv.String(), draft.Options{Rows: 10})
	require.Contains(t, s.Summary(), "the first 10 rows: later ones may differ")
}

func TestAFileIsReadAsItsReaderReadsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want, note string }{
		{"a.tsv", "a\tb,c\n1\tx\n", "a: int\nb_c: {type: string, from: \"b,c\"}", ""},
		{"a.csv", "\"a;b\";\"c;d\";e\n1;2;3\n", "a_b: {type: int, from: \"a;b\"}\nc_d: {type: int, from: \"c;d\"}\ne: int\n", ""},
		{"a.csv", "a,b\r1,2\r3,4\r", "a: int\nb: int\n", ""},
		{"a.csv", "a|b\n", "a: string null", "a header but no row"},
		{"a.csv", "a,b\n1,2\n3\n4,5,6\n", "a: int\nb: int\n", "2 records have a different number of fields: line 3 has 1 field, not 2"},
		{"a.csv", "a,b\n1,\"2\n3,4\n", "a: int\nb: int\n", "1 record is invalid"},
		{"a.csv", "\xff\xfea\x00,\x00b\x00\n\x001\x00,\x00\xfc\x00\n\x00", "a: int\nb: string", ""},
		{"a.json", `{"a":[{"x":1}],"b":[{"y":2}]}`, "x: int\n", "only a is read, not b"},
	} {
		s := inferred(t, c.name, c.text)
		require.Contains(t, s.Item(""), c.want)
		require.Contains(t, strings.Join(s.Notes, "\n"), c.note)
	}
	require.Equal(t, "column1: int\ncolumn2: int\n", inferredWith(t, "a.csv", "1,2\n", draft.Options{NoHeader: true}).Item(""))
	require.Equal(t, "a: int\n", inferredWith(t, "a.csv", "Report\nof today\na\n1\n", draft.Options{SkipLines: 2}).Item(""))
	require.Equal(t, "a: int\nb: int\n", inferred(t, "a.csv", "sep=;\na;b\n1;2\n").Item(""))
	require.Equal(t, "a: int\n", inferredWith(t, "a.csv", "a\n1\n", draft.Options{Types: map[string]string{"a": "int"}, AllText: true}).Item(""))
}

func TestATextThatIsNotUTF8IsNamed(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"in.csv": "id,name\n1,Ann\n2,J\xfcrgen\n", "head.csv": "id,n\xe4me\n1,x\n", "in.jsonl": "{\"a\":\"b\"}\n{\"a\":\"J\xfcrgen\"}\n", "in.json": "[{\"a\":\"J\xfcrgen\"}]",
	} {
		_, err := inferring(t, name, text, draft.Options{})
		require.ErrorContains(t, err, "is not UTF-8 (is it windows-1252? --encoding windows-1252)", name)
	}
	_, err := inferring(t, "in.csv", "id,name\n1,Ann\n2,J\xfcrgen\n", draft.Options{})
	require.ErrorContains(t, err, "in.csv:3: byte 0xfc at offset 17")
	for likely, text := range map[string]string{
		"ibm850": "J\x81rgen Gr\x84f", "windows-1251": "\xcf\xf0\xe8\xe2\xe5\xf2", "koi8-r": "\xf0\xd2\xc9\xd7\xc5\xd4", "shift-jis": "\x82\xa0\x82\xa2\x83A", "euc-jp": "\xa4\xa2\xa4\xa4",
	} {
		_, err = inferring(t, "in.csv", "id,name\n1,"+text+"\n", draft.Options{})
		require.ErrorContains(t, err, "is it "+likely+"?")
		require.NotEmpty(t, inferredWith(t, "in.csv", "id,name\n1,"+text+"\n", draft.Options{Encoding: likely}).Fields)
	}
	s := inferredWith(t, "in.csv", "id,name\n1,J\xfcrgen\n", draft.Options{Encoding: "windows-1252"})
	require.Equal(t, 6, s.Fields[1].Longest)
	_, err = inferring(t, "in.csv", "i\x00d\x00\n\x001\x00\n\x00", draft.Options{})
	require.ErrorContains(t, err, "--encoding utf-16le")
}

// Rule D11b.
func TestNullsOfCSVAreEmptyWithoutQuotes(t *testing.T) {
	t.Parallel()
	s := inferred(t, "in.csv", "a,b,c,d\n1,,\"\",x\n,y,2,\"\"\n")
	require.Equal(t, `a: int null  # 1 null
b: string null  # 1 null; at most 1 character
c: string null  # at most 1 character; int, except for empty quoted texts, which are not null
d: string null  # at most 1 character
`, s.Item(""))
	s = inferred(t, "in.csv", "a\n1\n\n2\n")
	require.Equal(t, 3, s.Rows)
	require.Equal(t, "a: int null  # 1 null\n", s.Item(""), "an empty line of a file of one column is a null")
}
