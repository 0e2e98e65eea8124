package cli_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

// fileSkips skips the lines with a v that is not a number, and fails at item 7 if the file exists.
const fileSkips = `job: load
parameters: {out: {type: path, default: out.csv, identifying: false}}
flow:
- step: load
  chunk:
    size: 2
    reader: {csv: {path: in.csv, item: {id: int, v: int}}}
    processor: {filter: item.id > 0}
    writer: WRITER
    skip: LIMIT
`

const fileLines = "id,v\n1,1\n2,x\n3,3\n4,4\n5,y\n6,6\n"

func fileScene(t *testing.T, url, writer string) *scene {
	t.Helper()
	s := newScene(t, url, map[string]string{"in.csv": fileLines})
	s.must("migrate")
	s.limit(writer, 1)
	return s
}

func (s *scene) limit(writer string, limit int) {
	s.write("load.yaml", strings.NewReplacer("WRITER", strings.ReplaceAll(writer, "DIR", s.dir), "LIMIT", fmt.Sprint(limit)).Replace(fileSkips))
}

func (s *scene) text(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(s.path(name))
	require.NoError(s.t, err)
	return string(text)
}

const (
	csvOut = `{csv: "${params.out}"}`
)

// Rule C12b: the restart of a step replaces the file, also one with the rows
// of a redrive.
func TestRowsAreNotRedrivenIntoAFileThatTheStepHasNotPublished(t *testing.T) {
	t.Parallel()
	for name, writer := range map[string]string{"csv": csvOut, "in a list": `[{table: {name: t, create: true}}, {csv: "${params.out}"}]`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				s := fileScene(t, url, writer)
				require.Equal(t, cli.ExitFailed, s.run("run", "load.yaml").code)
				s.write("good.jsonl", `{"id":1,"raw":"2,22"}`)
				for range 2 {
					r := s.run("skips", "redrive", "1", "--from", s.path("good.jsonl"))
					require.Equal(t, cli.ExitFailed, r.code)
					require.Contains(t, r.err, "step load of execution 1 is FAILED; it publishes its output when it completes, which would replace redriven rows: restart execution 1 first, then redrive its skipped items")
					require.NoFileExists(t, s.path("out.csv"))
				}
				s.limit(writer, 10)
				s.must("restart", "1")
				require.Equal(t, "id,v\n1,1\n3,3\n4,4\n6,6\n", s.text("out.csv"))
				s.must("skips", "redrive", "1", "--from", s.path("good.jsonl"), "out="+s.path("redriven.csv"))
				require.Equal(t, "id,v\n2,22\n", s.text("redriven.csv"))
			})
		})
	}
}

// Rule C12b: an item is marked when its row is committed, and the file comes
// later.
func TestARedriveOfWhichNoItemIsLeftPublishesItsFileWhenItIsContinued(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		writer := `[{brittle: {while: "DIR/stone"}}, {csv: "${params.out}"}]`
		s := fileScene(t, url, writer)
		s.limit(writer, 10)
		s.must("run", "load.yaml")
		s.write("stone", "")
		s.write("good.jsonl", `{"id":1,"raw":"2,22"}`+"\n"+`{"id":2,"raw":"5,55"}`)
		redrive := []string{"skips", "redrive", "1", "out=" + s.path("redriven.csv")}
		r := s.run(append(redrive, "--from", s.path("good.jsonl"))...)
		require.Equal(t, cli.ExitFailed, r.code)
		require.Contains(t, r.err, "it cannot finish")
		require.Empty(t, s.must("skips", "list", "1", "--left").out)
		require.NoFileExists(t, s.path("redriven.csv"))
		r = s.run(append(redrive, "--from", s.path("good.jsonl"))...)
		require.Contains(t, r.err, "execution 2 has redriven it\n", "and it names the command that goes on")
		require.Contains(t, r.err, "surfin skips redrive 1 --step load")

		require.NoError(t, os.Remove(s.path("stone")))
		s.must(redrive...)
		require.Equal(t, "id,v\n2,22\n5,55\n", s.text("redriven.csv"))
		r = s.run(redrive...)
		require.Equal(t, cli.ExitRefused, r.code)
		require.Contains(t, r.err, "no skipped items are left to redrive")
	})
}

// Rule C12b: the step may run again, from the start, after an incomplete
// redrive.
func TestARedriveDoesNotReplaceWhatItsStepPublishedAfterItBegan(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		writer := `[{brittle: {while: "DIR/stone"}}, {csv: "${params.out}"}]`
		s := fileScene(t, url, writer)
		s.limit(writer, 10)
		s.must("run", "load.yaml")
		s.write("stone", "")
		require.NoError(t, os.Rename(s.path("out.csv"), s.path("before.csv")))
		s.write("good.jsonl", `{"id":1,"raw":"2,22"}`)
		require.Equal(t, cli.ExitFailed, s.run("skips", "redrive", "1", "--from", s.path("good.jsonl")).code)
		require.NoError(t, os.Remove(s.path("stone")))
		s.must("restart", "1", "--from", "load", "--if-complete")
		require.Equal(t, "id,v\n1,1\n3,3\n4,4\n6,6\n", s.text("out.csv"))

		r := s.run("skips", "redrive", "1")
		require.Equal(t, cli.ExitFailed, r.code)
		require.Contains(t, r.err, "of execution 3) after this redrive started, and the rest of this redrive would replace its output: abandon this redrive, and redrive the skipped items of execution 3")
		require.Equal(t, "id,v\n1,1\n3,3\n4,4\n6,6\n", s.text("out.csv"))
	})
}

// Rule C12b.
func TestAnotherRedriveDoesNotBeginBeforeOneIsComplete(t *testing.T) {
	t.Parallel()
	s := fileScene(t, testdb.SQLite(t), csvOut)
	text := strings.Replace(s.text("load.yaml"), "identifying: false", "identifying: true", 1)
	s.write("load.yaml", strings.NewReplacer("skip: 1", "skip: 10", `{csv: "${params.out}"}`, `[{brittle: {while: "`+s.dir+`/stone"}}, {csv: "${params.out}"}]`).Replace(text))
	s.must("run", "load.yaml")
	s.write("stone", "")
	s.write("good.jsonl", `{"id":1,"raw":"2,22"}`)
	require.Equal(t, cli.ExitFailed, s.run("skips", "redrive", "1", "--from", s.path("good.jsonl"), "out="+s.path("a.csv")).code)
	s.write("good.jsonl", `{"id":2,"raw":"5,55"}`)
	r := s.run("skips", "redrive", "1", "--from", s.path("good.jsonl"), "out="+s.path("b.csv"))
	require.Equal(t, cli.ExitUsage, r.code)
	require.Contains(t, r.err, "execution 2, a redrive of step load, is FAILED: complete it with its own parameters before another redrive of these items, or abandon it")
	require.NoError(t, os.Remove(s.path("stone")))
	s.must("abandon", "2")
	s.must("skips", "redrive", "1", "--from", s.path("good.jsonl"), "out="+s.path("b.csv"))
	require.Equal(t, "id,v\n5,55\n", s.text("b.csv"))
}

// Rule C12b.
func TestOneRedriveIsForAllPartitionsOfAStep(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{
			"in-0.csv": "id,v\n1,1\n2,x\n", "in-1.csv": "id,v\n3,3\n", "in-2.csv": "id,v\n4,4\n5,y\n6,z\n",
			"load.yaml": `job: load
parameters: {to: {type: string, default: out, identifying: false}}
flow:
- step: load
  partition: {by: {count: 3}, workers: 1}
  chunk:
    reader: {csv: {path: "in-${part.index}.csv", item: {id: int, v: int}}}
    writer: {csv: "${params.to}-${part.index}.csv"}
    skip: 10
`,
		})
		s.must("migrate")
		s.must("run", "load.yaml")
		s.must("skips", "export", "1", "--out", s.path("bad.jsonl"))
		s.write("good.jsonl", strings.NewReplacer(`"raw":"2,x"`, `"raw":"2,22"`, `"raw":"5,y"`, `"raw":"5,55"`).Replace(s.text("bad.jsonl")))
		r := s.must("skips", "redrive", "1", "--from", s.path("good.jsonl"), "to=redriven")
		require.Contains(t, r.out, "load COMPLETED 2 of 3 2 0 1 ")
		require.Equal(t, "id,v\n2,22\n", s.text("redriven-0.csv"))
		require.Equal(t, "id,v\n5,55\n", s.text("redriven-2.csv"))
		require.NoFileExists(t, s.path("redriven-1.csv"))

		s.write("good.jsonl", `{"id":3,"raw":"6,66"}`)
		r = s.run("skips", "redrive", "1", "--from", s.path("good.jsonl"), "to=redriven")
		require.Equal(t, cli.ExitFailed, r.code)
		require.Contains(t, r.err, "redriven-2.csv exists")
		require.NoError(t, os.Rename(s.path("redriven-2.csv"), s.path("redriven-2.before")))
		s.must("skips", "redrive", "1", "--from", s.path("good.jsonl"), "to=redriven")
		require.Equal(t, "id,v\n6,66\n", s.text("redriven-2.csv"))
	})
}
