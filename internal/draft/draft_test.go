//test:plain

package draft_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/draft"
)

func inferred(t *testing.T, name, text string) *draft.Shape {
	t.Helper()
	return inferredWith(t, name, text, draft.Options{})
}

func inferredWith(t *testing.T, name, text string, o draft.Options) *draft.Shape {
	t.Helper()
	s, err := inferring(t, name, text, o)
	require.NoError(t, err)
	return s
}

func inferring(t *testing.T, name, text string, o draft.Options) (*draft.Shape, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return draft.Infer(t.Context(), path, o)
}

func TestTypesAreThoseThatTheValuesHave(t *testing.T) {
	t.Parallel()
	s := inferred(t, "in.csv", "\xEF\xBB\xBFNo;Zip Code;Paid;Ratio;Open;Day;At;Who?;Who?;Left\n"+
		"1;007;4.50;0.5;true;24.12.2026;2026-01-02 03:04;a;x;NA\n2;010;12.00;0.25;false;25.12.2026;2026-01-02 03:05;;y;3\n")
	require.Equal(t, `no: {type: int, from: "No"}
zip_code: {type: string, from: Zip Code}  # at most 3 characters; line 2: "007" would become "7"
paid: {type: decimal, from: Paid, scale: 2}
ratio: {type: decimal, from: Ratio}
open: {type: bool, from: Open}
day: {type: date, from: Day, format: dd.MM.yyyy}
at: {type: timestamp, from: At, format: "yyyy-MM-dd HH:mm"}
`, s.Item("")[:strings.Index(s.Item(""), "who")])
	require.Contains(t, s.Item(""), `left: {type: string, from: Left}  # at most 2 characters; int, except for "NA": null_if: [NA] reads it as null`)
	require.Equal(t, ";", s.Delimiter)
	require.True(t, s.Whole)

	s = inferred(t, "in.csv", "id;doc;md5\nc0ffee00-0000-4000-8000-000000000001;{};d41d8cd98f00b204e9800998ecf8427e\nc0ffee00-0000-4000-8000-000000000002;[1];d41d8cd98f00b204e9800998ecf8427e\n")
	require.Equal(t, "id: uuid\ndoc: json\nmd5: string  # at most 32 characters\n", s.Item(""))

	s = inferred(t, "in.csv", "tags;n\n\"[\"\"a\"\",null]\";1\n")
	require.Equal(t, "tags: list of string\nn: int\n", s.Item(""))
}

func TestNestedValuesOfJSONAreFoundByTheirPaths(t *testing.T) {
	t.Parallel()
	s := inferred(t, "in.geojson", `{"bbox":[1,2],"crs":{"a":[{}]},"features":[{"id":1,"at":{"x.y":1.5,"b":true},"list":[{"c":1}]},{"id":"2","at":null,"list":[]}]}`)
	require.Equal(t, "features", s.Items)
	require.Equal(t, []string{"list"}, s.Lists)
	require.Equal(t, `id: json  # numbers or booleans, and texts: type string with coerce: convert converts all to texts
at_x_y: {type: decimal null, from: "at[\"x.y\"]", scale: 1, optional: true}  # 1 null
at_b: {type: bool null, from: at.b, optional: true}  # 1 null
list: json
`, s.Item(""))
}

// Rule D13.
func TestArraysOfSimpleValuesAreLists(t *testing.T) {
	t.Parallel()
	s := inferred(t, "in.jsonl", `{"ids":[1,null],"at":[8.5,47],"on":[true],"keys":["c0ffee00-0000-4000-8000-000000000001"],"days":["2026-01-31"],"times":["2026-01-31T08:30:00Z"],"tags":["a"],"mixed":[1,"a"],"grid":[[1]],"none":[],"some":[]}
{"ids":[],"at":[1.25,2],"on":[false,true],"keys":[],"days":null,"times":["2026-01-31T08:30:00+01:00"],"tags":["2026-01-31"],"mixed":[],"grid":[],"none":[],"some":{"a":1}}
`)
	require.Equal(t, `ids: list of int
at: list of decimal
on: list of bool
keys: list of uuid
days: list of date null  # 1 null
times: list of timestamp
tags: list of string
mixed: json
grid: json
none: json
some: json
`, s.Item(""))
	files, err := s.Start("in.jsonl", 1)
	require.NoError(t, err)
	require.Contains(t, files[1].Text, `"ids" jsonb not null`)
}

func TestAFileWithoutRowsOrFormatIsRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"in.json": "[]", "in.jsonl": "\n", "in.xml": "<a/>", "b.json": `{"a":1}`, "empty.csv": ""} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := draft.Infer(t.Context(), path, draft.Options{})
		require.ErrorContains(t, err, path)
	}
}
