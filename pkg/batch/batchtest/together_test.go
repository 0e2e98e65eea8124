package batchtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

const togetherJob = `
job: together
parameters:
  in: {type: path}
  out: {type: path}
flow:
- step: csv
  partition: {by: {files: "${params.in}/*.csv"}, workers: 2}
  chunk:
    size: 4
    reader: {csv: {path: "${part.path}", item: {id: int, name: string}}}
    writer: {csv: {path: "${params.out}/all.csv", together: true}}
- step: fixed
  partition: {by: {files: "${params.in}/*.csv"}, workers: 2}
  chunk:
    size: 4
    reader: {csv: {path: "${part.path}", item: {id: int, name: string}}}
    writer:
      fixed:
        path: "${params.out}/all.dat"
        together: true
        header: "H the head"
        columns: {id: 1-5, name: 6-12}
        trailer: {begins: T, count: 2-6, sums: {id: 7-14}}
- step: jsonl
  partition: {by: {files: "${params.in}/*.csv"}, workers: 2}
  chunk:
    size: 4
    reader: {csv: {path: "${part.path}"}}
    writer:
    - jsonl: {path: "${params.out}/all.jsonl.gz", together: true}
    - csv: {path: "${params.out}/open.csv", together: true, encoding: utf-16}
    - route:
      - {when: "item.id matches '1$'", writer: {table: {name: ones, create: true}}}
      - {writer: {csv: {path: "${params.out}/rest.csv", together: true}}}
`

// Rule C15w.
func TestOneFileOfManyPartsSurvivesAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	everywhere(t, func(c *batchtest.Crash) {
		c.Again = 1
		c.Job = c.Path("job.yaml")
		c.Params = []string{"in=" + c.Path("in"), "out=" + c.Path("out")}
		c.Setup = func(t *testing.T, e *batchtest.Env) {
			e.File("job.yaml", togetherJob)
			require.NoError(t, os.MkdirAll(e.Path("in"), 0o750))
			e.File("in/a.csv", "id,name\n")
			for i, name := range []string{"b", "c", "d"} {
				text := "id,name\n"
				for row := range 7 * i {
					text += fmt.Sprintf("%d,%s %d\n", 100*i+row, name, row)
				}
				e.File("in/"+name+".csv", text)
			}
		}
		c.Check = func(t *testing.T, _ *batchtest.Env) {
			text, err := os.ReadFile(c.Path("out/all.csv"))
			require.NoError(t, err)
			require.Equal(t, 1+7+14, strings.Count(string(text), "\n"))
			text, err = os.ReadFile(c.Path("out/all.dat"))
			require.NoError(t, err)
			require.True(t, strings.HasSuffix(string(text), "\nT0002100003612\n"), string(text))
			left, err := filepath.Glob(c.Path("out/*.part*"))
			require.NoError(t, err)
			require.Empty(t, left)
		}
	})
}

const remoteTogether = `
job: remote
parameters:
  in: {type: path}
  out: {type: path}
flow:
- step: csv
  partition: {by: {files: "${params.in}/*.csv"}, remote: true}
  chunk:
    size: 4
    reader: {csv: {path: "${part.path}", item: {id: int, name: string}}}
    writer: {csv: {path: "${params.out}/all.csv", together: true}}
`

// Rule C15w.
func TestWorkersWriteOneFileThoughEachIsKilledAtEveryCommit(t *testing.T) {
	t.Parallel()
	everywhere(t, func(c *batchtest.Crash) {
		c.Worker = true
		c.Job = c.Path("job.yaml")
		c.Params = []string{"in=" + c.Path("in"), "out=" + c.Path("out")}
		c.Setup = func(t *testing.T, e *batchtest.Env) {
			e.File("job.yaml", remoteTogether)
			require.NoError(t, os.MkdirAll(e.Path("in"), 0o750))
			for i, name := range []string{"b", "c", "d"} {
				text := "id,name\n"
				for row := range 5 * i {
					text += fmt.Sprintf("%d,%s %d\n", 100*i+row, name, row)
				}
				e.File("in/"+name+".csv", text)
			}
		}
		c.Check = func(t *testing.T, _ *batchtest.Env) {
			left, err := filepath.Glob(c.Path("out/*.part*"))
			require.NoError(t, err)
			require.Empty(t, left)
		}
	})
}
