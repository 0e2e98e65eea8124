package acceptance

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// valuesJob moves values of every text kind from csv through a table that it creates, and an existing one, to
// jsonl, and from there to csv again.
const valuesJob = `
job: values
parameters:
  most: {type: int, default: 1000, identifying: false}
types:
  thing: {id: uuid, n: int, doc: json null, digest: {type: bytes null, format: hex}, tags: {type: list of string null, separator: ";"}, days: list of date}
flow:
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: thing}}
    writer: {table: {name: thing, create: true, key: [id], mode: upsert}}
- step: copy
  chunk:
    skip: 1
    reader: {query: {sql: "select * from thing", key: [id]}}
    writer: {table: copy}
- step: export
  chunk:
    size: 3
    reader: {query: {sql: "select * from thing", key: [id], fetch: 2}}
    processor: {validate: "int(item.n) <= params.most"}
    writer: {jsonl: out.jsonl}
- step: back
  chunk:
    reader: {jsonl: {path: out.jsonl, item: {id: uuid, n: int, doc: json null, digest: bytes null, tags: list of string null, days: list of date}}}
    processor: {map: {id: item.id, n: item.n, doc: item.doc, digest: "item.digest == nil ? nil : encode(item.digest, 'hex')", tags: item.tags, days: item.days}}
    writer: {csv: back.csv}
`

type thing struct {
	id, digest string
	n          int
	doc        row.JSON
	tags       []string
	days       []string
}

// Rule D12.
func TestJSONUUIDsAndBytesComeBackFromEveryPlaceAsTheyWere(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"values.yaml": valuesJob})
		things := s.writeThings(30)
		columns := "(id uuid primary key, n bigint check (n <> 5), doc json text, digest blob, tags list of string, days list of date)"
		if strings.HasPrefix(url, "postgres") {
			columns = "(id uuid primary key, n bigint check (n <> 5), doc jsonb, digest bytea, tags text[], days date[])"
		}
		s.said("sql", "--write", "create table copy "+columns)
		code, out := s.run("run", "values.yaml", "most=20")
		require.NotEqual(t, 0, code, out)
		s.said("run", "values.yaml", "most=1000") // from the uuid on that was committed last

		// A row that the database refused was stored, and is written to the table unchanged.
		for _, statement := range []string{"drop table copy", "create table copy " + strings.Replace(columns, " check (n <> 5)", "", 1)} {
			s.said("sql", "--write", statement)
		}
		require.Contains(t, s.said("skips", "redrive", "1"), "written=1")
		s.write("check.yaml", "job: check\nflow:\n- step: a\n  chunk:\n    reader: {query: {sql: select * from copy, key: [id]}}\n    writer: {jsonl: redriven.jsonl}\n")
		s.said("run", "check.yaml")

		requireThings(t, things, s.read("out.jsonl"))
		for _, one := range things {
			if one.n == 5 {
				requireThings(t, []thing{one}, s.read("redriven.jsonl"))
			}
		}
		s.write("again.yaml", strings.NewReplacer("in.csv", "back.csv", "job: values", "job: again", "name: thing", "name: thing2", "from thing", "from thing2", "skip: 1", "skip: 100", "out.jsonl", "again.jsonl").Replace(valuesJob))
		s.said("run", "again.yaml")
		require.Equal(t, s.read("out.jsonl"), s.read("again.jsonl"))
	})
}

func (s *scene) writeThings(rows int) (things []thing) {
	random := rand.New(rand.NewPCG(1, 2))
	var csv strings.Builder
	csv.WriteString("id,n,doc,digest,tags,days\n")
	for n := range rows {
		var u row.UUID
		digest := make([]byte, 1+random.IntN(20))
		for i := range u {
			u[i] = byte(random.IntN(256))
		}
		for i := range digest {
			digest[i] = byte(random.IntN(256))
		}
		one := thing{id: u.String(), n: n, digest: base64.StdEncoding.EncodeToString(digest)}
		one.doc = row.JSON(fmt.Sprintf(`{"n":%d,"list":[1.50,"a\"\\\t{},'é🐟",null,true],"in":{"x y":%d.25}}`, n, n))
		if n%3 == 0 {
			one.doc = row.JSON([]string{`"text, \"quoted\""`, `[]`, `12.5`, `false`}[n%4])
		}
		one.tags, one.days = []string{"a", "b \\c", "é,{}"}[:n%4%3+1], []string{"2026-01-31", "0001-01-01"}[:n%3%2+1]
		things = append(things, one)
		form := []string{"%s", "{%s}", "urn:uuid:%s"}[n%3]
		fmt.Fprintf(&csv, "%s,%d,\"%s\",%s,\"%s\",\"%s\"\n", fmt.Sprintf(form, strings.ToUpper(one.id)), n,
			strings.ReplaceAll(strings.ReplaceAll(string(one.doc), `":`, `" : `), `"`, `""`), []string{"", "0x", `\x`}[n%3]+hex.EncodeToString(digest), strings.Join(one.tags, ";"),
			[]string{`[""` + strings.Join(one.days, `"", ""`) + `""]`, "{" + strings.Join(one.days, ",") + "}"}[n%2])
	}
	csv.WriteString("00000000-0000-0000-0000-000000000001,-1,null,,,[]\n")
	things = append(things, thing{id: "00000000-0000-0000-0000-000000000001", n: -1, days: []string{}})
	s.write("in.csv", csv.String())
	return things
}

func requireThings(t *testing.T, things []thing, lines string) {
	t.Helper()
	found := map[string]thing{}
	for line := range strings.Lines(lines) {
		var r struct {
			ID, Digest string
			N          int
			Doc        json.RawMessage
			Tags, Days []string
		}
		require.NoError(t, json.Unmarshal([]byte(line), &r), line)
		one := thing{id: r.ID, n: r.N, digest: r.Digest, tags: r.Tags, days: r.Days}
		if string(r.Doc) != "null" {
			one.doc = row.JSON(r.Doc).Canonical()
		}
		found[r.ID] = one
	}
	want := map[string]thing{}
	for _, one := range things {
		if one.doc != "" {
			one.doc = one.doc.Canonical()
		}
		want[one.id] = one
	}
	require.Equal(t, want, found)
}
