package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestSqlPrintsRowsAndWritesOnlyWhenTold(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, nil)
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		r := s.run("sql", "create table a (id int, name text, paid numeric(10,2))")
		require.Equal(t, cli.ExitFailed, r.code)
		require.Contains(t, r.err, " to change data: add --write\n")

		require.Equal(t, "0 rows changed\n", s.run("sql", "--write", "create table a (id int, name text, paid numeric(10,2))").out)
		require.Equal(t, "2 rows changed\n", s.run("sql", "--write", "insert into a values (1, 'one', 1.50), (2, null, 22)").out)
		require.Equal(t, "id\n─\n 3\n", s.run("sql", "--write", "insert into a values (3, 'three', null) returning id").out)
		require.Equal(t, cli.ExitFailed, s.run("sql", "with x as (select 1) insert into a select 9, 'no', 0").code, "the database refuses, whatever the statement looks like")

		r = s.runWith(strings.NewReader("-- all of them\nselect * from a order by id"), "sql", "-")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		lines := strings.Split(r.out, "\n")
		require.Equal(t, "id name paid", lines[0])
		require.Regexp(t, `^ 1 one +1\.50$`, lines[2])
		require.Regexp(t, `^ 2 NULL +22\.00$`, lines[3])
		require.Equal(t, " 3 three NULL", lines[4])

		const numbers = "select cast(0.1 as real) as a, cast(1e6 as double precision) as b, cast(1e-7 as double precision) as c"
		require.Equal(t, "[\n {\"a\": 0.1, \"b\": 1000000, \"c\": 0.0000001}\n]\n", s.run("sql", numbers, "--format", "json").out, "rule D7")
		require.Regexp(t, `0\.1 +│? *1000000 +│? *0\.0000001`, s.run("sql", numbers).out)
		r = s.run("sql", "select id, name from a order by id", "--format", "json", "--limit", "2")
		require.Equal(t, "[\n {\"id\": 1, \"name\": \"one\"},\n {\"id\": 2, \"name\": null}\n]\n", r.out)
		require.Contains(t, r.err, "WARN only the first 2 rows are printed: --limit 0 prints all")

		r = s.run("sql", "select * from none")
		require.Equal(t, cli.ExitFailed, r.code)
		require.Regexp(t, `^surfin: (DATABASE|postgres [^\n]*): [^\n]*none[^\n]*\n$`, r.err)
	})
}

func TestShowTellsEverythingAboutAnExecution(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"load.yaml": loadJob, "numbers.csv": "id,name\n1,one\n2,two\n3,three\nfour,four\n"})
	require.Equal(t, cli.ExitFailed, s.run("run", "load.yaml").code)

	r := s.run("show", "1")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	for _, want := range []string{
		"job load, execution 1: FAILED in TOOK\n",
		"started TIME\n", "\nerror step load: ",
		"parameter type identifying value\n─\ninput path yes numbers.csv\nleast int no 0\nyear int yes 1995\n",
		"step status read written filtered skipped commits duration rows/s\n─\nload FAILED ",
	} {
		require.Contains(t, r.out, want)
	}
	require.Regexp(t, `\nrestart it: surfin restart 1 (--file FILE )?--database-url URL\n`, r.out)

	var record map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.run("show", "1", "--format", "json").out), &record))
	require.Equal(t, "FAILED", record["status"])
	require.Equal(t, map[string]any{"input": "numbers.csv", "least": 0.0, "year": 1995.0}, record["parameters"])
	require.Regexp(t, "^surfin restart 1 (--file FILE )?--database-url URL$", record["restart"])
	step := record["steps"].([]any)[0].(map[string]any)
	require.Equal(t, 2.0, step["written"], "one chunk is committed")
	require.Equal(t, s.normal(loadJob), s.run("show", "1", "--definition").out)
}

func TestListFiltersAndPages(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{
		"a.yaml": "job: a\nparameters:\n  n: {type: int}\n  note: {type: string, default: '', identifying: false}\nflow:\n- {step: one, tasklet: nothing}\n",
		"b.yaml": "job: b\nflow:\n- {step: one, tasklet: panic}\n",
	})
	r := s.run("list")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	require.Empty(t, r.out)
	require.Equal(t, "INFO no executions in DATABASE\n", r.err)

	for _, args := range [][]string{{"a.yaml", "n=1"}, {"a.yaml", "n=2", "note=x"}, {"b.yaml"}, {"a.yaml", "n=3"}} {
		s.run(append([]string{"run"}, args...)...)
	}
	r = s.run("list", "--job", "a", "--limit", "2")
	require.Equal(t, "id job parameters status attempt started duration\n─\n 4 a n=3 COMPLETED 1 TIME TOOK\n 2 a n=2 COMPLETED 1 TIME TOOK\n", r.out)
	require.Equal(t, "INFO there are more: --before 2\n", r.err)
	r = s.run("list", "--job", "a", "--limit", "2", "--before", "2")
	require.Equal(t, "id job parameters status attempt started duration\n─\n 1 a n=1 COMPLETED 1 TIME TOOK\n", r.out)
	require.Empty(t, r.err)

	var records []map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.run("list", "--status", "failed,stopped", "--format", "json").out), &records))
	require.Len(t, records, 1)
	require.Equal(t, "b", records[0]["job"])
}

func TestComponentsAreListedDescribedAndInTheSchema(t *testing.T) {
	t.Parallel()
	s := newScene(t, "postgres://nobody@127.0.0.1:1/none", nil)
	r := s.run("list", "components", "--kind", "writer")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	require.Contains(t, r.out, "writer csv ")
	require.NotContains(t, r.out, "reader")
	require.Contains(t, s.run("list", "components").out, "item number ")

	r = s.run("describe", "csv")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	require.True(t, strings.HasPrefix(r.out, "# reader `csv`\n"), r.out)
	require.Contains(t, r.out, "delimiter")
	r = s.run("describe", "cvs")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Contains(t, r.err, "surfin: there is no component cvs; ")

	require.True(t, json.Valid([]byte(s.run("schema").out)))
}

func TestResultsAreJSONEvenWhereThereIsNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), nil)
	require.Equal(t, "[]\n", s.run("list", "--format", "json").out)
	require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
	require.Equal(t, "[]\n", s.run("list", "--format", "json").out)
	require.Equal(t, "[\n]\n", s.run("sql", "select 1 as a where 1 = 0", "--format", "json").out)
}

func TestCommandsThatOnlyReadMakeNoDatabase(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.EmptySQLite(t), nil)
	require.Equal(t, cli.ExitCompleted, s.run("list").code)
	require.Equal(t, cli.ExitUsage, s.run("show", "1").code)
	require.Equal(t, cli.ExitUsage, s.run("restart", "1").code)
	r := s.run("sql", "select 1")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Equal(t, "surfin: DATABASE does not exist: nothing was run in it yet\n", r.err)
	require.NoFileExists(t, strings.TrimPrefix(s.url, "sqlite:"))
}
