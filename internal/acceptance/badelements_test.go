package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnElementOfAFileOfOneLineIsFoundAndRedriven(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{
			"load.yaml": `job: load
flow:
- step: load
  chunk:
    skip: 10
    reader: {json: {path: in.json, item: {id: int, code: {type: string, from: deep.code}}}}
    writer: {table: numbers}
`, "in.json": `[{"id":1,"deep":{"code":"a"}},{"id":"two","deep":{"code":"b"}},{"id":3,"deep":{"code":"c"}},4]`})
		must := s.said
		must("sql", "--write", "create table numbers (id int primary key, code text)")
		must("migrate")
		must("run", "load.yaml")
		require.Contains(t, must("skips", "show", "2"), "1 byte from byte 92 on\n\n4\n")
		require.Contains(t, must("skips", "list", "1"), "in.json:1, element 4 ")
		exported := filepath.Join(s.dir, "skipped.jsonl")
		must("skips", "export", "1", "--out", exported)
		text, err := os.ReadFile(exported)
		require.NoError(t, err)
		require.Contains(t, string(text), `"raw":"{\"id\":\"two\",\"deep\":{\"code\":\"b\"}}","offset":30,"length":32,`)
		require.Contains(t, string(text), `"line":1,"index":2,`)
		require.NoError(t, os.Remove(filepath.Join(s.dir, "in.json")))

		fixed := filepath.Join(s.dir, "fixed.jsonl")
		s.write("fixed.jsonl", strings.NewReplacer(`\"two\"`, "2", `"raw":"4"`, `"raw":"{\"id\":4,"`).Replace(string(text)))
		require.Contains(t, must("skips", "redrive", "1", "--from", fixed), "read=1 written=1")
		require.Contains(t, must("skips", "export", "2"), `"raw":"{\"id\":4,"`, "it is broken in another way now")
		s.write("fixed.jsonl", `{"id":2,"raw":"{\"id\":4,\"deep\":{\"code\":\"d\"}}"}`)
		must("skips", "redrive", "1", "--from", fixed)
		require.Contains(t, must("sql", "select count(*) as n, sum(id) as s from numbers where code in ('a', 'b', 'c', 'd')", "--format", "json"), `"n": 4`)
	})
}
