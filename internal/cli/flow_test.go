package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

const nightlyJob = "job: nightly\nparameters:\n  day: {type: date}\n  note: {type: string, default: x, identifying: false}\nincrementer: day\nflow:\n- {step: one, tasklet: nothing}\n"

func TestAJobWithAnIncrementerGoesOnWithWhatIsIncompleteThenMakesTheNextInstance(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"nightly.yaml": nightlyJob, "load.yaml": loadJob})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		r := s.run("run", "nightly.yaml")
		require.Equal(t, cli.ExitUsage, r.code, "there is no day to count from")
		require.Contains(t, r.err, "surfin: next instance of job nightly: parameter day: it is required (type date)\n")
		require.Equal(t, cli.ExitCompleted, s.run("run", "nightly.yaml", "day=2026-11-01").code)
		require.Equal(t, cli.ExitCompleted, s.run("run", "nightly.yaml").code)
		require.Equal(t, cli.ExitCompleted, s.run("next", "nightly.yaml").code)

		s.write("nightly.yaml", nightlyJob+"- {step: two, tasklet: panic}\n")
		require.Equal(t, cli.ExitFailed, s.run("run", "nightly.yaml", "--next").code)
		s.write("nightly.yaml", nightlyJob+"- {step: two, tasklet: nothing}\n")
		r = s.run("run", "nightly.yaml", "note=again")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Contains(t, r.err, "INFO the newest instance has not completed: it goes on execution=4 status=FAILED\n")
		require.Equal(t, cli.ExitCompleted, s.run("run", "nightly.yaml").code)
		r = s.run("list", "instances")
		for _, want := range []string{"11-05 1 6", "11-04 2 5", "11-03 1 3", "11-02 1 2", "11-01 1 1"} { // attempts, last execution
			require.Contains(t, r.out, " nightly day=2026-"+want+" COMPLETED\n")
		}
		r = s.run("run", "nightly.yaml", "day=2026-11-01")
		require.Equal(t, cli.ExitRefused, r.code)
		require.Contains(t, r.err, " next instance: surfin next DIR/nightly.yaml ")
		require.Equal(t, cli.ExitCompleted, s.run("run", "nightly.yaml", "day=2027-01-01").code, "a day that is named")
	})
}

func TestAJobWithoutAnIncrementerHasNoNextInstance(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"load.yaml": loadJob})
	for _, args := range [][]string{{"next", "load.yaml", "year=2000"}, {"run", "load.yaml", "--next", "year=2000"}} {
		r := s.run(args...)
		require.Equal(t, cli.ExitFailed, r.code)
		require.Contains(t, r.err, "surfin: job load: the job has no incrementer\n add one: incrementer: NAME (in DIR/load.yaml)\n a new instance: surfin run DIR/load.yaml year=2000 --again ")
	}
	require.Equal(t, "[]\n", s.run("list", "--format", "json").out, "nothing was run")
	require.Equal(t, cli.ExitUsage, s.run("run", "load.yaml", "--next", "--again").code)
}

func TestAGateThatDoesNotHoldIsExitCodeFiveAndIsShown(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{
			"step.yaml": loadJob + "  expect: duration > duration('1h')\n",
			"job.yaml":  "job: whole\nexpect: steps.one.read > 0\nflow:\n- {step: one, tasklet: nothing, expect: exit == 'COMPLETED'}\n", "numbers.csv": numbers,
		})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		r := s.run("run", "step.yaml")
		require.Equal(t, cli.ExitExpect, r.code, r.err)
		require.Contains(t, r.err, "WARN what was expected does not hold step=last gate=")
		require.Contains(t, r.out, "last FAILED EXPECT_FAILED ")
		require.Contains(t, r.err, " restart it: surfin restart 1 ")
		r = s.run("show", "1")
		require.Contains(t, r.out, "FAILED, exit EXPECT_FAILED")
		require.Contains(t, r.out, "last: expect: duration > duration('1h'): does not hold")

		r = s.run("run", "job.yaml")
		require.Equal(t, cli.ExitExpect, r.code, r.err)
		require.Contains(t, r.err, "WARN what was expected does not hold job=whole gate=")
		r = s.run("show", "2")
		require.Contains(t, r.out, "steps.one.read > 0: does not hold (")
		require.Contains(t, r.out, "one: expect: exit == 'COMPLETED': holds")
		require.Equal(t, []string{"2", "1"}, s.ids("list", "--exit", "EXPECT_FAILED"))
		require.Equal(t, cli.ExitExpect, s.run("restart", "2").code, "it is asked again")
		require.Contains(t, s.run("show", "2", "--format", "json").out, `"gate": "exit == 'COMPLETED': holds`)
	})
}

func TestShowTellsPartitionsInShortAndAllOfThemWhenAsked(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"p.yaml": `job: p
flow:
- step: load
  partition: {by: {count: 3}, workers: 1}
  chunk:
    reader: {csv: {path: "numbers${part.index}.csv", item: {id: int, name: string}}}
    writer: {table: {name: numbers, create: true}}
`, "numbers0.csv": numbers, "numbers1.csv": "id,name\nfour,four\n", "numbers2.csv": numbers})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		r := s.run("run", "p.yaml")
		require.Equal(t, cli.ExitFailed, r.code, r.err)
		require.Contains(t, r.err, `step ended step=load status=FAILED read=10 written=10 partitions="2 COMPLETED, 1 FAILED"`)
		require.Contains(t, r.err, "WARN partition ended partition=load:1 status=FAILED")
		require.NotContains(t, r.err, "load:2", "one line is enough for what went well")
		require.Contains(t, r.out, "\nload: 3 partitions: 2 COMPLETED, 1 FAILED\n")
		require.Contains(t, r.out, "\nload:1 FAILED ")
		require.NotContains(t, r.out, "load:0 ")

		r = s.run("show", "1")
		require.Contains(t, r.out, "\nload: 3 partitions: 2 COMPLETED, 1 FAILED\n")
		require.NotContains(t, r.out, "load:0 ")
		require.Contains(t, s.run("show", "1", "--partitions").out, "\nload:0 COMPLETED 5 5 ")
		require.Contains(t, s.run("show", "1", "--format", "json").out, `"statuses": {
 "COMPLETED": 2,
 "FAILED": 1
 },`)
		s.write("numbers1.csv", "id,name\n4,four\n")
		r = s.run("restart", "1")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Contains(t, r.out, "\nload: 1 partition: 1 COMPLETED\n", "only the unfinished one ran")
	})
}

func TestShowTellsDecisionsConditionsAndChildJobs(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{
		"child.yaml": "job: child\nflow:\n- {step: inner, tasklet: nothing}\n",
		"d.yaml": `job: d
flow:
- step: one
  tasklet: nothing
- step: never
  when: steps.one.read > 0
  tasklet: nothing
- decide: way
  choose:
  - {when: steps.one.read > 0, next: {end: {exit: ODD}}}
  - next: sub
- job: sub
  file: child.yaml
`})
	r := s.run("run", "d.yaml")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	require.Contains(t, r.err, "INFO passed by: its condition does not hold element=never when=\"steps.one.read > 0\"\n")
	require.Contains(t, r.err, "INFO decided element=way verdict=")
	require.Contains(t, r.out, "never COMPLETED NOOP ")
	r = s.run("show", "1")
	require.Contains(t, r.out, "\nsub: execution 2 (COMPLETED): surfin show 2 --database-url URL\n")
	require.Contains(t, r.out, "decided element verdict\n─\ndecide way ")
	require.Contains(t, s.run("show", "1", "--format", "json").out, `"child": 2`)
}
