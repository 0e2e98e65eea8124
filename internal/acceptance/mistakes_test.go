package acceptance

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/cli"
)

const typedApp = "SURFIN_ACCEPTANCE_TYPED_APP"

type apple struct{ ID int }

type pear struct{ ID int }

type peel struct{}

func (peel) Process(_ context.Context, p pear) (pear, error) { return p, nil }

func runTypedApp() {
	cli.Main(
		batch.Item[apple]("apple"), batch.Item[pear]("pear"),
		batch.Processor[pear, pear]("peel", func() peel { return peel{} }),
		batch.Tasklet("deaf", func() deaf { return deaf{} }),
	)
}

func TestAReaderOfOneTypeBeforeAProcessorOfAnotherIsRefusedAtLoad(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"fruit.yaml": `job: fruit
flow:
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: apple}}
    processor: peel
    writer: {table: fruit}
`})
	program, err := os.Executable()
	require.NoError(t, err)
	s.env = []string{typedApp + "=1"}
	for _, command := range []string{"validate", "run"} {
		code, out := s.startProgram(program, command, "fruit.yaml").wait()
		require.Equal(t, 2, code, out)
		require.Contains(t, out, "fruit.yaml:6:16: processor peel: ", out)
		require.Contains(t, out, "apple")
		require.Contains(t, out, "pear")
		require.NotContains(t, out, "goroutine")
	}
}

func TestAJobFileWithFiveMistakesReportsAllFiveWithPositions(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"bad.yaml": `job: bad
parameters:
  day: {type: daet}
flow:
- step: load
  chunk:
    siez: 100
    reader: {csv: {path: in.csv, item: {id: int, name: string null}}}
    processor: {filter: "item.nam == 'x'"}
    writer: {tabel: customers}
  next: {FAILED: tidy}
`})
	for _, command := range []string{"validate", "run"} {
		code, out := s.run(command, "bad.yaml")
		require.Equal(t, 2, code, out)
		found := regexp.MustCompile(`(?m)^(?:surfin: )?bad\.yaml:(\d+:\d+): `).FindAllStringSubmatch(out, -1)
		var at []string
		for _, f := range found {
			at = append(at, f[1])
		}
		require.Equal(t, []string{"3:15", "7:5", "9:31", "10:14", "11:18"}, at, out)
		require.Contains(t, out, "did you mean size?")
		require.Contains(t, out, "did you mean name")
		require.Contains(t, out, "did you mean table?")
	}
}

func TestWhatIsMissingOrWrongIsOneClearLineWithoutAStack(t *testing.T) {
	t.Parallel()
	const load = `job: load
parameters:
  input: {type: path}
  into:  {type: string, default: customers}
  size:  {type: int, default: 1, min: 1}
flow:
- step: load
  chunk:
    reader: {csv: {path: "${params.input}", item: {id: int}}}
    writer: {table: {name: "${params.into}"}}
`
	files := map[string]string{
		"load.yaml": load, "in.csv": "id\n1\n", "other.csv": "number\n1\n",
		"lake.yaml":   "job: lake\nflow:\n- step: load\n  chunk:\n    reader: {csv: {path: in.csv, item: {id: int}}}\n    writer: {csv: {path: s3://bucket/out.csv}}\n",
		"select.yaml": "job: select\nflow:\n- step: s\n  tasklet: {sql: insert into nowhere values (1)}\n",
	}
	cases := []struct {
		name, want string // of the last line that begins with the program's name
		args       []string
		code       int
	}{
		{"missing table of a writer", "step load: table customers does not exist; set `create: true`, or create it: create table", []string{"load.yaml", "input=in.csv"}, 1},
		{"missing table of a statement", "step s: sql: .*nowhere", []string{"select.yaml"}, 1},
		{"missing file", "step load: csv: no such file: .*none.csv", []string{"load.yaml", "input=none.csv"}, 1},
		{"missing column", `step load: csv: .*other.csv has no column "id" for field id`, []string{"load.yaml", "input=other.csv"}, 1},
		{"missing job file", "job file: open none.yaml: no such file or directory", []string{"none.yaml"}, 2},
		{"missing parameter", "parameter input: it is required", []string{"load.yaml"}, 2},
		{"empty path", "load.yaml:9:26: path: the path is empty", []string{"load.yaml", "input="}, 2},
		{"URL as a path parameter", "load.yaml:9:26: path: this program is built without the place s3", []string{"load.yaml", "input=s3://bucket/in.csv"}, 2},
		{"URL of no place as a path parameter", "parameter input: gs://bucket/in.csv is a URL, but only paths of a disk", []string{"load.yaml", "input=gs://bucket/in.csv"}, 2},
		{"URL as a path", `lake.yaml:6:26: path: this program is built without the place s3`, []string{"lake.yaml"}, 2},
		{"parameter of another type", `parameter size: "many" is not an int`, []string{"load.yaml", "input=in.csv", "size=many"}, 2},
		{"parameter out of its limits", "parameter size: ", []string{"load.yaml", "input=in.csv", "size=0"}, 2},
		{"parameter of another name", "parameter inptu", []string{"load.yaml", "inptu=in.csv", "input=in.csv"}, 2},
	}
	inTurn(t, 1, func(t *testing.T, url string) {
		s := newScene(t, url, files)
		for _, c := range cases {
			code, out := s.run(append([]string{"run"}, c.args...)...)
			require.Equal(t, c.code, code, "%s:\n%s", c.name, out)
			var said []string
			for _, line := range strings.Split(out, "\n") {
				if strings.HasPrefix(line, "surfin: ") {
					said = append(said, line)
				}
			}
			require.Len(t, said, 1, "%s:\n%s", c.name, out)
			require.Regexp(t, c.want, said[0], c.name)
			require.NotContains(t, out, "goroutine", c.name)
			require.NotContains(t, out, ".go:", c.name)
		}
	})
}

// Rule T6.
func TestAMigrationInAnAtomicGroupIsRefusedAtLoad(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"m/1_a.up.sql": "create table a (id int);", "group.yaml": `job: group
flow:
- atomic: all
  steps:
  - {step: fill, tasklet: {sql: select 1}}
  - step: schema
    tasklet: {migration: m}
`})
		for _, command := range []string{"validate", "run"} {
			code, out := s.run(command, "group.yaml")
			require.Equal(t, 2, code, out)
			require.Contains(t, out, "group.yaml:7:5: step schema is in an atomic group, and a migration commits in transactions of its own: the group's rollback would not undo it")
			require.Contains(t, out, "put the step before the group")
		}
	})
}
