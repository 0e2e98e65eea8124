package acceptance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const listJob = `
job: tags
types:
  thing: {id: int, tags: {type: list of string, from: meta.tags}, counts: {type: list of int null, from: "meta.counts"}, days: {type: list of date, format: dd.MM.yyyy, default: "[]"}}
flow:
- step: load
  chunk:
    skip: 2
    reader: {jsonl: {path: in.jsonl, item: thing}}
    processor:
    - validate: "len(item.tags) < 4"
    - map: {id: item.id, tags: sort(distinct(item.tags)), first: "item.tags[0]", counts: item.counts, total: "sum(item.counts ?? [])", days: item.days, red: "'red' in item.tags", words: "split(join(' ', item.tags), ' ')"}
    writer: {table: {name: things, create: true, key: [id]}}
`

// Rule D13.
func TestListsOfDocumentsGoToATableAndBack(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"tags.yaml": listJob, "in.jsonl": `{"id":1,"meta":{"tags":["red","a \"b\"","red"],"counts":[1,null,3]},"days":["31.01.2026"]}
{"id":2,"meta":{"tags":[],"counts":null},"days":null}
{"id":3,"meta":{"tags":["ok",7],"counts":[]},"days":[]}
{"id":4,"meta":{"tags":["a","b","c","d,\\"],"counts":[]},"days":[]}
`})
		db, _ := s.open()
		s.said("run", "tags.yaml")
		require.Contains(t, s.said("skips", "show", "1"), "field tags[1]: 7 is not a string (coerce: convert accepts other forms)")
		require.Contains(t, s.said("skips", "show", "2"), `["a","b","c","d,\\"]`)
		exported := s.said("skips", "export", "1")
		s.write("fixed.jsonl", strings.NewReplacer(`\"ok\",7`, `\"ok\",\"7\"`, `"d,\\"]`, `"x"]`, `"c",`, "").Replace(exported))

		// A query describes the lists, and a copy of the table is exact.
		said := s.said("infer", "table:things")
		for _, field := range []string{"tags: list of string\n", "counts: list of int null\n", "days: list of date\n", "words: list of string\n"} {
			require.Contains(t, said, field)
		}
		s.said("copy", "table:things", "out.jsonl")
		want := `{"id":1,"tags":["a \"b\"","red"],"counts":[1,null,3],"days":["2026-01-31"],"first":"red","total":4,"red":true,"words":["red","a","\"b\"","red"]}
{"id":2,"tags":[],"counts":null,"days":[],"first":null,"total":0,"red":false,"words":[]}
`
		require.Equal(t, want, s.read("out.jsonl"))
		s.said("copy", "out.jsonl", "table:again")
		s.said("copy", "table:again", "back.csv", "--key", "id")
		require.Contains(t, s.read("back.csv"), `"[1,null,3]"`)
		s.said("copy", "back.csv", "table:third")
		s.write("last.yaml", "job: last\nflow:\n- step: a\n  chunk:\n    reader: {query: {sql: select * from third, key: [id], item: {id: int, tags: list of string, counts: list of int null, days: list of date, first: string null, total: int, red: bool, words: list of string}}}\n    writer: {jsonl: last.jsonl}\n")
		s.said("run", "last.yaml")
		require.Equal(t, want, s.read("last.jsonl"))

		require.Contains(t, s.said("skips", "redrive", "1", "--from", "fixed.jsonl"), "read=2 written=2")
		require.Equal(t, "[4 3]", fmt.Sprint(s.ints(db, "select count(*), sum(total) + sum(case when first in ('ok', 'a') then 1 else 0 end) - 3 from things", 2)))

		if !strings.HasPrefix(url, "postgres") {
			return
		}
		s.said("sql", "--write", "create table arrays (id bigint primary key, small smallint[], money numeric(12,2)[], at timestamptz[], name varchar(9)[], grid int[], doc jsonb[])")
		s.said("sql", "--write", `insert into arrays values (1, '{1,NULL}', '{1.5,2}', array[timestamptz '2026-01-31 08:30+01'], '{"a,b",NULL,"null"}', '{7}', '{}'), (2, null, '{}', null, '{""}', '{{1},{2}}', null)`)
		require.Contains(t, s.said("infer", "table:arrays"), "money: {type: list of decimal null, scale: 2}")
		code, out := s.run("copy", "table:arrays", "arrays.jsonl", "--skip", "1")
		require.Equal(t, 5, code, out)
		require.Equal(t, `{"id":1,"small":[1,null],"money":[1.50,2.00],"at":["2026-01-31T07:30:00Z"],"name":["a,b",null,"null"],"grid":[7],"doc":"{}"}`+"\n", s.read("arrays.jsonl"))
		code, out = s.run("copy", "table:arrays", "table:refused", "--print")
		require.Equal(t, 0, code, out)
	})
}
