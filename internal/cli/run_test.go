package cli_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestRunLoadsPrintsASummaryAndRefusesTheSameAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"load.yaml": loadJob, "numbers.csv": numbers})

	r := s.run("run", "load.yaml", "least=2")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	require.Equal(t, `job load, execution 1: COMPLETED in TOOK

step status read written filtered skipped commits duration rows/s
─
load COMPLETED 5 4 1 0 3 TOOK SPEED
last COMPLETED 0 0 0 0 0 TOOK -

load: table numbers in DATABASE
`, r.out)
	require.Equal(t, `INFO DATABASE (from --database-url)
INFO job started job=load execution=1 attempt=1
INFO step started step=load
INFO step ended step=load status=COMPLETED read=5 written=4
INFO step started step=last
INFO step ended step=last status=COMPLETED
`, r.err)

	r = s.run("run", "load.yaml", "least=0")
	require.Equal(t, cli.ExitRefused, r.code)
	require.Empty(t, r.out)
	require.Equal(t, `INFO DATABASE (from --database-url)
surfin: job load is already complete with these parameters (execution 1)
 another instance: surfin run DIR/load.yaml year=1996 --database-url URL
 the same again: surfin run DIR/load.yaml --again --database-url URL
 its result: surfin show 1 --database-url URL
`, r.err)

	require.Equal(t, cli.ExitCompleted, s.run("run", "load.yaml", "year=1996").code, "the refusal's way out")
	require.Equal(t, cli.ExitCompleted, s.run("run", "load.yaml", "--again").code, "the other one")
	r = s.run("sql", "select count(*) as n, min(id) as least, max(name) as name from numbers")
	require.Equal(t, " n least name\n─\n14 1 two\n", r.out, "4 rows, then twice 5")
}

func TestAgainMakesOneNewInstanceAfterTheOther(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"n.yaml": "job: n\nflow:\n- {step: one, tasklet: nothing}\n"})
	for range 6 {
		require.Equal(t, cli.ExitCompleted, s.run("run", "n.yaml", "--again").code)
	}
	r := s.run("list")
	require.Equal(t, `id job parameters status attempt started duration
─
 6 n run.again=5 COMPLETED 1 TIME TOOK
 5 n run.again=4 COMPLETED 1 TIME TOOK
 4 n run.again=3 COMPLETED 1 TIME TOOK
 3 n run.again=2 COMPLETED 1 TIME TOOK
 2 n run.again=1 COMPLETED 1 TIME TOOK
 1 n COMPLETED 1 TIME TOOK
`, r.out)
}

func TestAFailedJobSaysWhyInOneLineAndGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"load.yaml": loadJob, "numbers.csv": "id,name\n1,one\n2,two\n3,three\nfour,four\n5,five\n"})
		r := s.run("--auto-migrate", "true", "run", "load.yaml")
		require.Equal(t, cli.ExitFailed, r.code, r.err)
		require.Contains(t, r.out, "load FAILED ")
		require.Contains(t, r.err, "\nsurfin: job load failed: step load: ")
		require.Contains(t, r.err, "numbers.csv:5")
		require.Regexp(t, `\n restart it: surfin restart 1 (--file DIR/load.yaml )?--database-url `, r.err)
		require.Contains(t, r.err, "\n details: surfin show 1 --database-url ")
		require.NotContains(t, r.err, "goroutine")

		s.write("numbers.csv", "id,name\n1,one\n2,two\n3,three\n4444,four\n5,five\n")
		r = s.run("restart", "1", "--file", "load.yaml")
		require.Equal(t, cli.ExitFailed, r.code, "the reader refuses an input that is another one")
		require.Contains(t, r.err, "job load failed: step load: csv: ")
	})
}

func TestRestartPassesWhatIsCompleteAndResumesTheRest(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{
		"two.yaml": "job: two\nflow:\n- {step: good, tasklet: nothing}\n- step: bad\n  chunk:\n    reader: {csv: {path: in.csv, item: {id: int}}}\n    writer: {csv: out.csv}\n",
	})
	r := s.run("run", "two.yaml")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.err, "no such file: DIR/in.csv")

	r = s.run("restart", "1", "--file", "none.yaml")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Equal(t, "INFO DATABASE (from --database-url)\nsurfin: job file: open DIR/none.yaml: no such file or directory\n another file: surfin restart 1 --file FILE --database-url URL\n", r.err)

	s.write("in.csv", "id\n1\n2\n")
	r = s.run("restart", "1", "--format", "json", "--file", "two.yaml")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	var summary struct {
		Status  string
		Attempt int
		Steps   []struct {
			Step, Status    string
			Execution, Read int
		}
		Targets []struct{ Step, Writer, Target string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.out), &summary))
	require.Equal(t, "COMPLETED", summary.Status)
	require.Equal(t, 2, summary.Attempt)
	require.Len(t, summary.Steps, 2)
	require.Equal(t, 1, summary.Steps[0].Execution, "the step that was passed belongs to the first execution")
	require.Equal(t, 2, summary.Steps[1].Read)
	require.Equal(t, "DIR/out.csv", summary.Targets[0].Target)
	require.Contains(t, r.err, "step passed: it completed before step=good execution=1")

	r = s.run("restart", "1", "--file", "two.yaml")
	require.Equal(t, cli.ExitRefused, r.code, "the instance is complete now")
}

func TestAPanicIsAnErrorAndItsStackIsForWhoAsks(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"p.yaml": "job: p\nflow:\n- {step: one, tasklet: panic}\n"})
	r := s.run("run", "p.yaml")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.err, "surfin: job p failed: step one: panic: the sky is falling\n")
	require.NotContains(t, r.err, "goroutine")
	require.Contains(t, r.err, "the stack: add --debug")

	r = s.run("run", "p.yaml", "--debug")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.err, "app_test.go:")
}

func TestAChangedJobFileIsWarnedOfAndRefusedWhereACompleteStepIsGone(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"j.yaml": "job: j\nflow:\n- {step: one, tasklet: nothing}\n- {step: two, tasklet: panic}\n"})
	require.Equal(t, cli.ExitFailed, s.run("run", "j.yaml").code)

	s.write("j.yaml", "job: j\nflow:\n- {step: uno, tasklet: nothing}\n- {step: two, tasklet: nothing}\n")
	r := s.run("run", "j.yaml")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Contains(t, r.err, "surfin: the job file has changed since execution 1 in what committed work depends on\nsurfin: step one has completed, and is no longer in the file\n")
	require.Contains(t, r.err, "compare: surfin show 1 --definition --database-url URL | diff - DIR/j.yaml")
	require.Contains(t, s.run("show", "1", "--definition").out, "- {step: two, tasklet: panic}")

	s.write("j.yaml", "job: j\nflow:\n- {step: one, tasklet: nothing}\n- {step: two, tasklet: nothing}\n")
	r = s.run("run", "j.yaml")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	require.Contains(t, r.err, "WARN changed: step two is different; its earlier work may be committed", "it has no transaction")
}

func TestAnInstanceThatMayNotBeRestartedIsRefusedAndAgainMakesAnother(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"o.yaml": "job: once\nrestartable: false\nflow:\n- {step: one, tasklet: panic}\n"})
	require.Equal(t, cli.ExitFailed, s.run("run", "o.yaml").code)
	for _, args := range [][]string{{"run", "o.yaml"}, {"restart", "1", "--file", "o.yaml"}} {
		r := s.run(args...)
		require.Equal(t, cli.ExitRefused, r.code)
		require.Contains(t, r.err, "the job is not restartable")
		require.Contains(t, r.err, " a new instance: surfin run DIR/o.yaml --again --database-url URL\n")
	}
	require.Equal(t, cli.ExitFailed, s.run("run", "o.yaml", "--again").code)
	require.Contains(t, s.run("list").out, " 2 once run.again=1 FAILED 1 ")
}

func TestAMissingTableIsOneLineThatSaysHowToMakeIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"numbers.csv": numbers,
		"m.yaml": "job: m\nflow:\n- step: load\n  chunk:\n    reader: {csv: {path: numbers.csv, item: {id: int, name: string}}}\n    writer: {table: absent}\n"})
	r := s.run("run", "m.yaml")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Regexp(t, `(?m)^surfin: job m failed: step load: [^\n]*absent[^\n]*$`, r.err)
	require.Contains(t, r.err, "create table if not exists")
}

func TestADatabaseThatAJobFileNamesAndNobodyKnowsIsAProblemOfTheFile(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"d.yaml": "job: d\ndatabase: orders\nflow:\n- {step: one, tasklet: nothing}\n"})
	r := s.run("run", "d.yaml")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Contains(t, r.err, "d.yaml:2:11: ")
	require.Contains(t, r.err, "orders")
	require.Contains(t, s.run("list").err, "no executions in")
}
