package cli_test

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/json"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/mapping"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/query"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/files"
)

func flowApp() cli.App {
	return app(slices.Concat(files.Components(), query.Components(), json.Components(), mapping.Components())...)
}

func (s *scene) flow(args ...string) result {
	s.t.Helper()
	var out, errs bytes.Buffer
	code := cli.Main(context.Background(), flowApp(), s.words(args), strings.NewReader(""), &out, &errs)
	return result{code: code, out: anyURL.ReplaceAllString(s.normal(out.String()), "--database-url URL"), err: s.normal(errs.String())}
}

const partsJob = `job: parts
flow:
- step: load
  partition: {by: {files: "in/*.csv"}, workers: 1}
  chunk:
    size: 1
    reader: {csv: {path: "${part.path}", item: {id: int}}}
    writer: {csv: "out/${part.name}"}
- {step: last, tasklet: nothing}
`

func partsScene(t *testing.T, url string) *scene {
	t.Helper()
	s := newScene(t, url, map[string]string{"parts.yaml": partsJob})
	require.NoError(t, os.Mkdir(s.path("in"), 0o700))
	require.NoError(t, os.Mkdir(s.path("out"), 0o700))
	s.write("in/a.csv", "id\n1\n2\n")
	s.write("in/b.csv", "id\n3\nfour\n")
	s.write("in/c.csv", "id\n5\n")
	return s
}

func TestExplainPartitionsNamesThoseThatAreNotDone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := partsScene(t, url)
		first := s.flow("run", "parts.yaml", "--auto-migrate", "true")
		require.Equal(t, cli.ExitFailed, first.code, first.err)
		text := s.flow("explain", "1").out
		require.Contains(t, text, "Step load FAILED: 4 read, 4 written; 2 of 3 partitions complete, b.csv is FAILED behind line 2 (")
		require.Contains(t, text, "A restart goes on with load, of which 2 partitions are complete and b.csv (behind line 2) runs again and then, if load completes, runs last.\n")

		s.write("in/b.csv", "id\n3\n4444\n")
		require.Equal(t, cli.ExitFailed, s.flow("restart", "1").code, "the input is another one")
		require.Contains(t, s.flow("explain", "2").out, "2 of 3 partitions complete, b.csv is FAILED")
	})
}

func TestADryRunShowsThePartitionsAndSamplesTheFirst(t *testing.T) {
	t.Parallel()
	s := partsScene(t, testdb.SQLite(t))
	s.url = "sqlite:" + s.path("history.db")
	r := s.flow("run", "parts.yaml", "--dry-run")
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	require.Equal(t, `Dry run of job parts: nothing is written.

Step load (partition): reads csv ${part.path}
 3 partitions: a.csv, b.csv and c.csv; the items are of the first one
 writes to csv out/${part.name} (id)
 item outcome content
 ─
 a.csv:2 written {"id":1}
 a.csv:3 written {"id":2}
 2 read: 2 written

Step last (tasklet): would run nothing
 if load completes
`, r.out)
	require.Equal(t, []string{"in", "out", "parts.yaml"}, s.files())
	made, err := os.ReadDir(s.path("out"))
	require.NoError(t, err)
	require.Empty(t, made)
}

func TestExplainGatesDecisionsAndStops(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{
		"in.csv": "id\n1\ntwo\n3\n",
		"gate.yaml": `job: gate
flow:
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer: {csv: out.csv}
    skip: {limit: 5}
  expect: skipped == 0
- {step: last, tasklet: nothing}
`,
		"way.yaml": `job: way
parameters:
  n: {type: int, default: 5}
flow:
- {step: one, tasklet: nothing}
- decide: quality
  choose:
  - {when: params.n > 3, next: {stop: {restart: last, message: look at it}}}
  - {when: params.n > 2, next: between}
  - next: last
- {step: between, tasklet: nothing}
- {step: last, tasklet: nothing}
finally:
- {step: tell, tasklet: nothing}
`})
	require.Equal(t, cli.ExitExpect, s.flow("run", "gate.yaml").code)
	text := s.flow("explain", "1").out
	require.Contains(t, text, "Execution 1 of job gate FAILED at TIME, after TOOK, with exit code EXPECT_FAILED.\nStep load did its work, but what it is to expect does not hold.\n")
	require.Contains(t, text, "The gate of step load: skipped == 0: does not hold (skipped = 1).\n")

	r := s.flow("run", "way.yaml")
	require.Equal(t, cli.ExitStopped, r.code, r.err)
	require.Equal(t, `Execution 2 of job way (n=5) STOPPED at TIME, after TOOK.
Its flow stopped it: look at it.

Step one COMPLETED.
Step tell COMPLETED.

Decision quality led to stop.

A restart passes one, runs last and runs tell in the end.

 restart it: surfin restart 2 --database-url URL
 abandon it: surfin abandon 2 --database-url URL
`, s.flow("explain", "2").out)
	require.Equal(t, cli.ExitCompleted, s.flow("restart", "2").code)
}

func TestExplainSaysWhichOutcomeLeadsWhere(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{
		"in.csv": "id\n1\ntwo\n3\n",
		"ways.yaml": `job: ways
parameters:
  full: {type: bool, default: false}
flow:
- {step: first, tasklet: panic}
- step: copy
  chunk:
    size: 1
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer: {csv: out.csv}
  next: {FAILED: repair, PARTLY: complete}
- {step: publish, tasklet: nothing}
- {step: tell, tasklet: nothing, when: "params.full && steps.copy.read > 2", next: end}
- {step: complete, tasklet: nothing, when: "steps.copy.read > 2", next: publish}
- {step: repair, tasklet: nothing, next: publish}
`,
		"loop.yaml": `job: loop
flow:
- {step: first, tasklet: nothing}
- step: fetch
  chunk:
    size: 1
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer: {csv: fetched.csv}
- decide: more
  choose:
  - {when: steps.fetch.read > 10, next: fetch}
  - {when: steps.fetch.read > 5, next: {stop: {restart: last, message: look at it}}}
  - next: last
- {step: last, tasklet: nothing}
`})
	r := s.flow("run", "ways.yaml")
	require.Equal(t, cli.ExitFailed, r.code, r.err)
	text := s.flow("explain", "1").out
	require.Contains(t, text, "\nA restart runs first again from its beginning and then, if first completes, runs copy and publish and "+
		"does not run tell, whose condition does not hold; if copy fails, runs repair and continues with publish; "+
		"if it ends with PARTLY, runs complete (if steps.copy.read > 2) and continues with publish.\n")
	r = s.flow("run", "loop.yaml")
	require.Equal(t, cli.ExitFailed, r.code, r.err)
	text = s.flow("explain", "2").out
	require.Contains(t, text, "\nA restart passes first, goes on with fetch behind line 2 of DIR/in.csv and then, if fetch completes, asks more (may repeat) "+
		"where to go on; if more answers stop, stops at more; if it answers fetch, runs fetch (may repeat); "+
		"if it answers last, runs last.\n")
}
