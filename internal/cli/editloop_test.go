package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

const editedJob = `job: edited
flow:
- step: make
  tasklet: nothing
- step: load
  chunk:
    size: 2
    reader:
      csv: {path: in.csv, item: {id: int, nom: string}}
    writer: {table: {name: edited, create: true}}
`

func TestACorrectedStepOfWhichNothingIsCommittedRunsAsItIsNow(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"j.yaml": editedJob, "in.csv": "id,name\n1,a\n2,b\n3,c\n"})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		r := s.run("run", "j.yaml")
		require.Equal(t, cli.ExitFailed, r.code, r.err)
		require.Contains(t, r.err, "nom")

		s.write("j.yaml", strings.Replace(editedJob, "nom: string", "name: string", 1))
		const takes = "tep load takes its new definition: it has committed nothing"
		r = s.run("explain", "1")
		require.Contains(t, r.out, "A restart passes make and runs load again from its start.\n", r.err)
		require.Contains(t, r.out, "/j.yaml has changed since; the plan is for the file as it is now.\nS"+takes+".\n")
		r = s.run("explain", "1", "--format", "json")
		require.Contains(t, r.out, `"new_definition": true`)
		r = s.run("run", "j.yaml", "--dry-run")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Contains(t, r.out, "Changed since: s"+takes+".\n")

		r = s.run("run", "j.yaml")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Contains(t, r.err, "INFO the job file has changed since execution 1: s"+takes+" step=load compare=")
		require.Equal(t, 1, strings.Count(r.err, "changed"), r.err)
		require.Contains(t, s.run("show", "2").out, "\nload: took its new definition, as nothing was committed by the old one\n")
		require.Contains(t, s.run("show", "2", "--format", "json").out, `"new_definition": true`)
		require.NotContains(t, s.run("show", "1", "--format", "json").out, `"new_definition": true`)
		require.Contains(t, s.run("sql", "select count(*) as n from edited").out, "n\n─\n3\n")
	})
}

func TestAChangeOfCommittedWorkIsRefusedWithADiff(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		job := strings.Replace(editedJob, "nom: string", "name: string", 1)
		s := newScene(t, url, map[string]string{"j.yaml": job, "in.csv": "id,name\n1,a\n2,b\nx,c\n"})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		require.Equal(t, cli.ExitFailed, s.run("run", "j.yaml").code)
		s.write("j.yaml", "# corrected\n"+strings.Replace(job, "id: int", "id: string", 1))
		const refused = `surfin: the job file has changed since execution 1 in what committed work depends on
surfin: DIR/j.yaml:10:27: step load has committed work with reader csv: item {id: int, name: string}, and it is {id: string, name: string} now
 --- execution 1
 +++ DIR/j.yaml
 @@ -7,4 +8,4 @@
 size: 2
 reader:
 - csv: {path: in.csv, item: {id: int, name: string}}
 + csv: {path: in.csv, item: {id: string, name: string}}
 writer: {table: {name: edited, create: true}}
 compare: surfin show 1 --definition --database-url `
		for _, words := range [][]string{{"run", "j.yaml"}, {"restart", "1", "--file", "j.yaml"}, {"run", "j.yaml", "--dry-run"}} {
			r := s.run(words...)
			require.Equal(t, cli.ExitUsage, r.code, words)
			require.Contains(t, r.err, refused, words)
			require.Contains(t, r.err, "\n restart anyway: surfin restart 1 --file DIR/j.yaml --accept-changes ", words)
			require.Contains(t, r.err, "\n from the start: surfin restart 1 --file DIR/j.yaml --from-start ", words)
		}
		r := s.run("explain", "1")
		require.Contains(t, r.out, "It cannot be restarted: changes of its job file affect committed work: step load has committed work with reader csv: item")
		require.Contains(t, r.out, "@@ -7,4 +8,4 @@\n")
		require.Contains(t, r.out, " restart it from the start: surfin restart 1 --file DIR/j.yaml --from-start ")
		require.NotContains(t, s.run("list").out, "\n 2 ", "no execution was made")
		require.Equal(t, cli.ExitCompleted, s.run("run", "j.yaml", "--dry-run", "--accept-changes").code)

		s.write("in.csv", "id,name\n1,a\n2,b\n3,c\n")
		r = s.run("run", "j.yaml", "--from-start", "--dry-run")
		require.Contains(t, r.out, "Step make (tasklet): would run nothing", "nothing is passed")
		r = s.run("run", "j.yaml", "--from-start")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Contains(t, r.err, "WARN the job file has changed since execution 1; every step runs from its start\n")
		require.Contains(t, r.err, "INFO step started step=make\n")
		require.Contains(t, s.run("show", "2").out, "(attempt 2)")
		require.Contains(t, s.run("sql", "select count(*) as n from edited").out, "n\n─\n5\n", "the rows of execution 1 are still there")
	})
}

func TestARunFromTheStartIsARestartOfTheNewestAttempt(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"j.yaml": "job: j\nflow:\n- {step: one, tasklet: nothing}\n- {step: two, tasklet: panic}\n", "done.yaml": "job: done\nflow: [{step: one, tasklet: nothing}]\n"})
	require.Equal(t, cli.ExitFailed, s.run("run", "j.yaml").code)
	for attempt, words := range [][]string{{"run", "j.yaml", "--from-start"}, {"restart", "2", "--from-start"}, {"run", "j.yaml", "--from-start"}} {
		r := s.run(words...)
		require.Equal(t, cli.ExitFailed, r.code)
		require.Contains(t, r.err, "INFO step started step=one\n", attempt)
		require.NotContains(t, r.err, "passed")
	}
	require.Contains(t, s.run("show", "4").out, "(attempt 4)")
	require.Contains(t, s.run("run", "j.yaml").err, "INFO step passed: it completed before step=one execution=4\n")

	require.Equal(t, cli.ExitCompleted, s.run("run", "done.yaml", "--from-start").code, "there is no attempt: it is the first")
	r := s.run("run", "done.yaml", "--from-start")
	require.Equal(t, cli.ExitRefused, r.code, "it is complete")
	require.Equal(t, cli.ExitFailed, s.run("restart", "6", "--from-start").code)
}

func TestACorrectedParameterOfAChildJobCountsWhereTheChildHasCommittedNothing(t *testing.T) {
	t.Parallel()
	const parent = "job: parent\nflow:\n- job: child\n  file: child.yaml\n  parameters: {table: numbers}\n"
	const child = `job: child
parameters: {table: {type: string}}
flow:
- step: load
  chunk:
    size: 2
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer: {table: {name: "${params.table}"}}
`
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"j.yaml": parent, "child.yaml": child, "in.csv": "id\n1\n2\nx\n", "make.yaml": "job: make\nflow:\n- step: a\n  chunk: {reader: {csv: {path: none.csv, item: {id: int}}}, writer: {table: {name: found, create: true}}}\n", "none.csv": "id\n"})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		require.Equal(t, cli.ExitCompleted, s.run("run", "make.yaml").code)
		r := s.run("run", "j.yaml")
		require.Equal(t, cli.ExitFailed, r.code, r.err)
		require.Contains(t, r.err, "numbers")
		s.write("j.yaml", strings.Replace(parent, "numbers", "found", 1))
		r = s.run("run", "j.yaml")
		require.Equal(t, cli.ExitFailed, r.code, r.err)
		require.Contains(t, r.err, ": step child takes its new definition: it has committed nothing")
		require.Contains(t, r.err, "not an int", "the child reads now")

		s.write("j.yaml", strings.Replace(parent, "numbers", "other", 1))
		r = s.run("run", "j.yaml")
		require.Equal(t, cli.ExitUsage, r.code, "two rows are committed")
		require.Contains(t, r.err, "j.yaml:3:3: step child has started it with the parameter table found, and it is other now\n")
		require.Contains(t, s.run("sql", "select count(*) as n from found").out, "n\n─\n2\n")
		r = s.run("run", "j.yaml", "--accept-changes")
		require.Contains(t, r.err, "WARN accepted without effect: step child has started it with the parameter table found, and it is other now; the restart keeps the parameters that it was started with")

		s.write("j.yaml", strings.Replace(parent, "numbers", "found", 1))
		s.write("child.yaml", strings.Replace(child, "job: child", "job: renamed", 1))
		for _, words := range [][]string{{"run", "j.yaml"}, {"run", "j.yaml", "--dry-run"}} {
			r = s.run(words...)
			require.Equal(t, cli.ExitUsage, r.code, "the child would begin again as another instance")
			require.Contains(t, r.err, "j.yaml:3:3: step child has started job child, and it is renamed now\n")
		}
		require.Contains(t, s.run("explain", "6").out, "step child has started job child, and it is renamed now")
	})
}
