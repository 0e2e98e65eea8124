package acceptance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// Rule D9e.
func TestAKeyThatTheItemDoesNotHaveIsSaid(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		rows := `{"id":1,"at":{"x":1,"z":{"deep":1}},"doc":{"any":1}}
{"id":2,"at":{"x":2},"doc":{},"refund":5}
{"id":3,"at":{"x":3,"y.y":1},"doc":{},"refund":6}
`
		array := "[" + strings.Join(strings.Split(strings.TrimSpace(rows), "\n"), ",\n") + "]"
		s := newScene(t, url, map[string]string{"in.jsonl": rows, "in.json": array})
		run := func(format, unknown string) (int, string) {
			name := format + unknown
			s.write(name+".yaml", `job: `+name+`
flow:
- step: load
  chunk:
    reader: {`+format+`: {path: in.`+format+`, unknown: `+unknown+`, item: {id: int, x: {type: int, from: at.x}, doc: json}}}
    writer: {table: {name: `+name+`, create: true}}
    size: 1
`)
			return s.run("run", name+".yaml")
		}
		for _, format := range []string{"jsonl", "json"} {
			code, out := run(format, "ignore")
			require.Equal(t, 0, code, out)
			require.NotContains(t, out, "WARN")

			code, out = run(format, "error")
			require.Equal(t, 1, code, out)
			require.Contains(t, out, `in.`+format+`:1`)
			require.Contains(t, out, `the key "at.z" is not in the item type`)

			code, out = run(format, "warn")
			require.Equal(t, 0, code, out)
			shown := s.said("show", strings.Fields(strings.SplitAfter(out, "execution=")[1])[0])
			for _, key := range []string{`"at.z"`, `"refund"`, `"at[\"y.y\"]"`} {
				require.Contains(t, out, "WARN  step ended")
				require.Equal(t, 1, strings.Count(shown, "the key "+key), shown)
			}
		}
		code, out := run("jsonl", "fail")
		require.Equal(t, 2, code)
		require.Contains(t, out, `unknown: "fail" is not allowed`)
	})
}

func TestAGeneratedJobRefusesKeysThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"in.jsonl": `{"id":1}` + "\n", "in.csv": "id\n1\n"})
		s.said("init", "in.jsonl", "--dir", "a")
		s.write("in.jsonl", `{"id":1}`+"\n"+`{"id":2,"refund":3}`+"\n")
		code, out := s.run("run", "a/in.yaml")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, `in.jsonl:2: the key "refund" is not in the item type`)
		s.said("init", "in.csv", "--dir", "b")
		s.write("in.csv", "id\n007\n")
		code, out = s.run("run", "b/in.yaml")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, `"007" would become "7" as an int (exact: true)`)
	})
}
