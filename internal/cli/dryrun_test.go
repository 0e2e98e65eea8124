package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

const sampleJob = `job: sample
parameters:
  input: {type: path, default: in.csv}
flow:
- {step: schema, tasklet: nothing}
- step: load
  chunk:
    size: 2
    reader: {csv: {path: "${params.input}", item: {id: int, name: string}}}
    processor:
    - filter: item.id != 2
    writer: {table: {name: numbers, columns: {number: id, text: name}, create: true}}
    skip: {limit: 1}
- step: copy
  chunk:
    reader: {csv: {path: made.csv, item: {id: int}}}
    writer: {csv: out.csv}
`

func (s *scene) files() []string {
	s.t.Helper()
	found, err := filepath.Glob(s.path("*"))
	require.NoError(s.t, err)
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	return found
}

func TestADryRunShowsItemsAndWritesNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"s.yaml": sampleJob, "in.csv": "id,name\n1,one\n2,two\nthree,three\n4,four\n5,five\n"})
		if strings.HasPrefix(url, "sqlite:") {
			s.url = "sqlite:" + s.path("history.db")
		}
		r := s.run("run", "s.yaml", "--dry-run", "--sample", "4")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		if strings.HasPrefix(url, "sqlite:") {
			require.Equal(t, `Dry run of job sample (input=in.csv): nothing is written.

Step schema (tasklet): would run nothing

Step load (chunk): reads csv DIR/in.csv, then filter
 if schema completes
 writes to table numbers (number, text) in DATABASE
 item outcome content
 ─
 in.csv:2 written {"id":1,"name":"one"}
 in.csv:3 filtered {"id":2,"name":"two"}
 in.csv:4 skipped DIR/in.csv:4: character 1: field id: "three" is not an int
 in.csv:5 written {"id":4,"name":"four"}
 3 read: 2 written, 1 filtered, 1 skipped

Step copy (chunk): reads csv DIR/made.csv
 if load completes
 writes to csv DIR/out.csv (id)
 not sampled: csv: no such file: DIR/made.csv (schema may create it)
`, r.out)
		}
		require.Equal(t, []string{"in.csv", "s.yaml"}, s.files(), "no database, no table, no .part")

		r = s.run("list", "--auto-migrate", "true")
		require.Contains(t, r.err, "no executions in")
		require.NotEqual(t, cli.ExitCompleted, s.run("sql", "select * from numbers").code, "no table")

		r = s.run("run", "s.yaml", "--dry-run", "--format", "json")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		var record struct {
			Sample int
			Fails  bool
			Steps  []struct {
				Step, Waits    string
				Read, Filtered int
				Items          []struct {
					Line    int
					Read    map[string]any
					Outcome string
					Class   string
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(r.out), &record))
		require.Equal(t, 20, record.Sample)
		require.Equal(t, 4, record.Steps[1].Read)
		require.Equal(t, "parse", record.Steps[1].Items[2].Class)
		require.Equal(t, map[string]any{"id": 5.0, "name": "five"}, record.Steps[1].Items[4].Read)
	})
}

func TestADryRunExitsWith1WhereAStepWouldFailAndWith2WhereTheFileIsWrong(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{
		"s.yaml": strings.Replace(sampleJob, "limit: 1", "limit: 0", 1), "in.csv": "id,name\n1,one\ntwo,two\n3,three\n",
		"none.yaml": "job: none\nflow:\n- step: load\n  chunk:\n    reader: {csv: {path: none.csv, item: {id: int}}}\n    writer: {csv: out.csv}\n",
		"bad.yaml":  "job: bad\nflow: []\n",
	})
	r := s.run("run", "s.yaml", "--dry-run")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.out, "in.csv:3 failed DIR/in.csv:3: character 1: field id: \"two\" is not an int\n in.csv:4 written", "the sample goes on")
	require.Contains(t, r.err, "surfin: step load would fail on DIR/in.csv:3: ")

	r = s.run("run", "none.yaml", "--dry-run")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.out, " would fail: csv: no such file: DIR/none.csv")
	require.Contains(t, r.err, "surfin: step load would fail: csv: no such file")

	require.Equal(t, cli.ExitUsage, s.run("run", "bad.yaml", "--dry-run").code)
	require.Equal(t, cli.ExitUsage, s.run("run", "s.yaml", "--dry-run", "nope=1").code)
	require.Equal(t, cli.ExitUsage, s.run("run", "s.yaml", "--dry-run", "--sample", "0").code)
	require.Equal(t, cli.ExitUsage, s.run("run", "s.yaml", "--sample", "3").code)
}

func TestADryRunSaysWhatAStepWaitsFor(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"w.yaml": `job: w
flow:
- {step: fetch, tasklet: nothing}
- step: load
  chunk:
    reader: {csv: {path: "${steps.fetch.out.path}", item: {id: int}}}
    writer: {csv: out.csv}
`})
	r := s.run("run", "w.yaml", "--dry-run")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	require.Contains(t, r.out, "Step load (chunk): reads csv ${steps.fetch.out.path}\n")
	require.Contains(t, r.out, " not sampled: it needs steps.fetch.out.path, known after the preceding steps have run\n")
	_, err := os.Stat(s.path("out.csv.part"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestADryRunIsThePlanOfAFirstRun(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"in.csv": "id\n1\n", "p.yaml": `job: p
parameters:
  big: {type: bool, default: false}
flow:
- {step: first, tasklet: nothing, next: {FAILED: repair, "*": load}}
- {step: last, tasklet: nothing, next: end}
- {step: repair, tasklet: nothing, when: steps.first.read == 0, next: first}
- split: both
  when: params.big
  branches:
  - [{step: a, tasklet: nothing}]
  - [{step: b, tasklet: nothing}]
  next: last
- step: load
  when: "!params.big"
  chunk:
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer: {csv: out.csv}
  next: quality
- decide: quality
  choose:
  - {when: params.big, next: {stop: {restart: last}}}
  - next: both
finally:
- {step: tell, tasklet: nothing}
`})
	r := s.run("run", "p.yaml", "--dry-run")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	require.Equal(t, `Dry run of job p (big=false): nothing is written.

Step first (tasklet): would run nothing
 (may repeat)

Step repair (tasklet): would run nothing
 if first fails, and if steps.first.read == 0 (may repeat)

Step load (chunk): reads csv DIR/in.csv
 after first
 writes to csv DIR/out.csv (id)
 item outcome content
 ─
 in.csv:2 written {"id":1}
 1 read: 1 written

Decision quality: asked when the flow reaches it
 if load completes

Stop at quality
 if quality answers stop

Nothing of both: its condition does not hold
 if quality answers both

Step last (tasklet): would run nothing
 after both

Step tell (tasklet): would run nothing, at the end
`, r.out)
	r = s.run("run", "p.yaml", "big=true", "--dry-run")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	require.Contains(t, r.out, "\nStep load (chunk): not run, its condition does not hold\n after first\n\nDecision quality")
	require.Contains(t, r.out, "\nStep a (tasklet): would run nothing\n if quality answers both\n\nStep b (tasklet): would run nothing\n if quality answers both\n")
}

func TestADryRunIsOfTheInstanceThatARunWouldRun(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"daily.yaml": `job: daily
parameters:
  day: {type: date, default: 2026-11-20}
incrementer: day
flow:
- {step: work, tasklet: nothing}
`})
		if strings.HasPrefix(url, "sqlite:") {
			s.url = "sqlite:" + s.path("history.db")
		}
		planned := func(args ...string) map[string]any {
			t.Helper()
			r := s.run(append([]string{"run", "daily.yaml", "--dry-run", "--format", "json"}, args...)...)
			require.Equal(t, cli.ExitCompleted, r.code, r.err)
			var plan struct{ Parameters map[string]any }
			require.NoError(t, json.Unmarshal([]byte(r.out), &plan))
			return plan.Parameters
		}
		require.Equal(t, map[string]any{"day": "2026-11-20"}, planned(), "there is no history")
		require.Equal(t, map[string]any{"day": "2026-11-20"}, planned("--again"))
		s.run("migrate")
		require.Equal(t, cli.ExitCompleted, s.run("run", "daily.yaml").code)
		require.Equal(t, map[string]any{"day": "2026-11-21"}, planned())
		require.Equal(t, map[string]any{"day": "2026-11-21"}, planned("--next"))
		require.Equal(t, map[string]any{"day": "2026-11-20", "run.again": 1.0}, planned("--again"))
		require.Equal(t, cli.ExitUsage, s.run("run", "daily.yaml", "--dry-run", "--again", "--next").code)
		require.Contains(t, s.run("list", "instances").out, "2026-11-20")
		require.NotContains(t, s.run("list", "instances").out, "2026-11-21")
	})
}

func TestAnInstanceIsPurgedByItsNumber(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"one.yaml": "job: one\nflow:\n- {step: work, tasklet: nothing}\n"})
		s.run("migrate")
		require.Equal(t, cli.ExitCompleted, s.run("run", "one.yaml").code)
		require.Contains(t, s.run("purge", "--instance", "1", "--dry-run").out, "would delete 1 execution, 1 instance, 1 step, 0 skipped items\n")
		require.Equal(t, cli.ExitUsage, s.run("purge", "--instance", "1", "--older-than", "1d").code)
		require.Contains(t, s.run("purge", "--instance", "1").out, "deleted 1 execution, 1 instance, 1 step, 0 skipped items\n")
		r := s.run("purge", "--instance", "1")
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, "no instance 1 in ")
		require.Equal(t, cli.ExitCompleted, s.run("run", "one.yaml").code, "it runs anew")
	})
}

func TestADryRunOfAFailedInstanceIsThePlanOfItsRestart(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"around.yaml": `job: around
flow:
- {step: one, tasklet: nothing}
- {step: two, tasklet: panic}
- {step: three, tasklet: nothing}
`})
		s.run("migrate")
		require.Equal(t, cli.ExitFailed, s.run("run", "around.yaml").code)
		require.Contains(t, s.run("run", "around.yaml", "--dry-run").out, "\nStep one (tasklet): passed, execution 1 completed it\n\n"+
			"Step two (tasklet): would run panic, since its last attempt did not complete\n\n"+
			"Step three (tasklet): would run nothing\n if two completes\n")
	})
}
