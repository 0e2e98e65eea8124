package acceptance

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// boundJob fails at the item bad, after a commit.
const boundJob = `
job: %s
parameters:
  v: {type: string, default: one, identifying: false}
  bad: {type: int, default: -1, identifying: false}
flow:
- step: load
  chunk:
    size: 1
    reader: %s
    processor: {validate: {ok: item.id != params.bad}}
    writer: %s
`

// Rule C15x.
func TestARestartRefusesOtherValuesInWhatIsReadAndWhereItIsWritten(t *testing.T) {
	t.Parallel()
	const read = `{query: {sql: "select id, g from src", key: [id], item: {id: int, g: string}}}`
	for _, c := range []struct {
		name, reader, writer string
		first, second        []string // parameters, and variables of the environment
		of                   string   // the component that is refused; empty means none
	}{
		{"sql", `{query: {sql: "select id, g from src where g = ${params.v}", key: [id], item: {id: int, g: string}}}`, `{table: one}`, []string{"v=one"}, []string{"v=two"}, "reader query used another value of ${params.v} (j.yaml:10:"},
		{"environment", `{query: {sql: "select id, g from src where g = ${env.V}", key: [id], item: {id: int, g: string}}}`, `{table: one}`, []string{"V=one"}, []string{"V=two"}, "reader query used another value of ${env.V} ("},
		{"table", read, `{table: {name: "${params.v}"}}`, nil, []string{"v=two"}, "writer table used another value of ${params.v} (j.yaml:12:"},
		{"second writer", read, `[{table: one}, {table: {name: "${params.v}_copy", create: true}}]`, nil, []string{"v=two"}, "writer table"},
		{"writer of a route", read, `{route: [{when: item.id >= 0, writer: {table: {name: "${params.v}"}}}]}`, nil, []string{"v=two"}, "writer route"},
		{"condition of a route", read, `{route: [{when: "params.v == 'one'", writer: {table: one}}, {writer: {table: two}}]}`, nil, []string{"v=two"}, "writer route used another value of params.v ("},
		{"same values", `{query: {sql: "select id, g from src where g >= ${params.v}", key: [id], item: {id: int, g: string}}}`, `{table: "${params.v}"}`, nil, nil, ""},
		{"number of the execution", `{query: {sql: "select id, cast(${job.execution} as text) as g from src", key: [id], item: {id: int, g: string}}}`, `{table: one}`, nil, nil, ""},
		{"processor", read, `{table: one}`, nil, []string{"v=two"}, ""},
		{"how much at once", `{query: {sql: "select id, g from src", key: [id], fetch: "${params.v == 'one' ? 10 : 20}", item: {id: int, g: string}}}`, `{table: one}`, nil, []string{"v=two"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				s := newScene(t, url, nil)
				s.write("j.yaml", fmt.Sprintf(boundJob, "j", c.reader, c.writer))
				db, _ := s.open()
				s.exec(db, "create table src (id int, g text)", "create table one (id int, g text)", "create table two (id int, g text)",
					"insert into src values (0, 'one'), (1, 'two'), (2, 'one'), (3, 'two'), (4, 'one'), (5, 'two'), (6, 'one'), (7, 'two')")
				code, out := s.with(c.first, "run", "j.yaml", "bad=4")
				require.Equal(t, 1, code, out)
				code, out = s.with(c.second, "run", "j.yaml")
				if c.of == "" {
					require.Equal(t, 0, code, out)
					return
				}
				require.Equal(t, 1, code, out)
				require.Contains(t, out, "the committed work of "+c.of)
				require.Contains(t, out, "accept the new one (--accept-changes)")
				code, out = s.with(c.first, "run", "j.yaml", "bad=6")
				require.Equal(t, 1, code, "the values of the first attempt are those of the committed work: %s", out)
				require.Contains(t, out, "item.id != params.bad")
				code, out = s.with(c.second, "run", "j.yaml", "--accept-changes", "bad=7")
				require.NotContains(t, out, "the committed work of")
				if code == 0 { // its rows are others
					return
				}
				code, out = s.with(c.first, "run", "j.yaml", "--from-start")
				require.Equal(t, 0, code, out)
			})
		})
	}
}

// Rule C15x.
func TestARestartComparesTheValuesThatAreBesideTheData(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"in.csv": "id\n1\n2\n3\n", "j.yaml": `
job: j
database: data
parameters:
  to: {type: string, default: one, identifying: false}
  bad: {type: int, default: -1, identifying: false}
flow:
- step: load
  chunk:
    size: 1
    reader: {csv: {path: in.csv, item: {id: int}}}
    processor: {validate: {ok: item.id != params.bad}}
    writer: {table: {name: "${params.to}", create: true}}
`})
		s.env = []string{"SURFIN_DATABASES_DATA=" + "sqlite:" + filepath.Join(s.dir, "data.db")}
		code, out := s.run("run", "j.yaml", "bad=3")
		require.Equal(t, 1, code, out)
		code, out = s.run("run", "j.yaml", "to=two")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, "the committed work of writer table used another value of ${params.to}")
		code, out = s.run("run", "j.yaml")
		require.Equal(t, 0, code, out)
	})
}

func (s *scene) with(words []string, args ...string) (int, string) {
	s.t.Helper()
	of := *s
	for _, word := range words {
		if word[0] >= 'A' && word[0] <= 'Z' {
			of.env = append(of.env, word)
		} else {
			args = append(args, word)
		}
	}
	return of.run(args...)
}
