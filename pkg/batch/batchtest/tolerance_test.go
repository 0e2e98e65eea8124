package batchtest_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// The jobs of this file tolerate faults.

const tolerantJob = `
job: tolerant
parameters:
  input: {type: path}
flow:
- step: create
  tasklet: {sql: "create table people (id bigint primary key, name text not null)"}
- step: load
  chunk:
    size: %SIZE%
    isolate: %ISOLATE%
    reader: {csv: {path: "${params.input}", item: {id: int, name: string}}}
    processor:
    - filter: item.id % 7 != 5
    - validate: item.name != 'nobody'
    writer: {table: people}
    skip: {limit: 10, errors: [invalid_item, constraint]}
    retry: {limit: 2, errors: [transient], backoff: {initial: 1ms}}
`

func tolerant(size, isolate string) string {
	return strings.NewReplacer("%SIZE%", size, "%ISOLATE%", isolate).Replace(tolerantJob)
}

func loadOf(c *batchtest.Crash, job string, lines ...string) {
	c.Job = c.Path("load.yaml")
	c.Params = []string{"input=" + c.Path("in.csv")}
	c.Setup = func(_ *testing.T, e *batchtest.Env) {
		e.File("load.yaml", job)
		e.File("in.csv", "id,name\n"+strings.Join(lines, "\n")+"\n")
	}
}

func skipsOf(t *testing.T, e *batchtest.Env, want ...string) {
	t.Helper()
	list, err := e.Repository().Executions(t.Context(), ports.ExecutionFilter{})
	require.NoError(t, err)
	got := []string{}
	for _, exec := range list {
		skipped, err := e.Repository().SkippedItems(t.Context(), ports.SkipFilter{Execution: exec.ID})
		require.NoError(t, err)
		for _, s := range skipped {
			_, line, _ := strings.Cut(s.Meta.String(), "in.csv:")
			got = append(got, string(s.Phase)+" "+line+" "+s.Class)
		}
	}
	require.ElementsMatch(t, want, got)
}

func TestALoadWithSkipsSurvivesAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	everywhere(t, func(c *batchtest.Crash) {
		loadOf(c, tolerant("3", "each"), "1,a", "x,b", "3,nobody", "4,d", "4,twice", "5,filtered", "7,nobody", "8,h", "y,i", "10,j")
		c.Check = func(t *testing.T, e *batchtest.Env) {
			e.HasRows("select id, name from people order by id", "1|a", "4|d", "8|h", "10|j")
			skipsOf(t, e, "read 3 parse", "process 4 validate", "write 6 unique", "process 8 validate", "read 10 parse")
		}
	})
}

// Rule C8.
func TestASplitSurvivesAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	for _, isolate := range []string{"each", "bisect"} {
		t.Run(isolate, func(t *testing.T) {
			t.Parallel()
			everywhere(t, func(c *batchtest.Crash) {
				if isolate == "each" {
					c.Again = 1
				}
				loadOf(c, tolerant("8", isolate), "1,a", "2,b", "2,twice", "3,c", "5,filtered", "4,nobody", "1,again", "8,h", "9,i", "10,j")
				c.Check = func(t *testing.T, e *batchtest.Env) {
					e.HasRows("select id, name from people order by id", "1|a", "2|b", "3|c", "8|h", "9|i", "10|j")
					skipsOf(t, e, "write 4 unique", "process 7 validate", "write 8 unique")
				}
			})
		})
	}
}

func TestALoadWithChunkRetriesSurvivesAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	everywhere(t, func(c *batchtest.Crash) {
		loadOf(c, tolerant("3", "each"), "1,a", "2,b", "3,c", "4,d", "6,f", "7,g", "8,h")
		c.Faults = []batchtest.Fault{
			{Step: "load", Phase: core.PhaseWrite, Calls: []int{1, 3, 4}, After: true, Err: exception.Retryable("write", errors.New("the line is down"))},
			{Step: "load", Phase: core.PhaseRead, Calls: []int{2}, Err: exception.Retryable("read", errors.New("the disk is slow"))},
		}
		c.Check = func(t *testing.T, e *batchtest.Env) {
			e.HasRows("select id, name from people order by id", "1|a", "2|b", "3|c", "4|d", "6|f", "7|g", "8|h")
			skipsOf(t, e)
		}
	})
}

const tolerantFiles = `
job: files
parameters:
  dir: {type: path}
flow:
- step: convert
  chunk:
    size: 4
    reader: {csv: {path: "${params.dir}/in.csv", item: person}}
    writer:
    - csv: {path: "${params.dir}/out.csv"}
    - jsonl: {path: "${params.dir}/out.jsonl"}
    skip: 5
    retry: {limit: 1, backoff: {initial: 1ms}}
`

// A database cannot roll back files: their writers return to the last commit
// themselves.
func TestFilesWithRetriesAndSkipsSurviveAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	everywhere(t, func(c *batchtest.Crash) {
		c.Job = c.Path("convert.yaml")
		c.Params = []string{"dir=" + c.Dir()}
		c.Options = personItems()
		c.Faults = []batchtest.Fault{
			{Phase: core.PhaseWrite, Component: "jsonl", Match: idIs(3), After: true, Err: exception.Skippable("write", errors.New("three is not wanted"))},
			{Phase: core.PhaseWrite, Component: "csv", Calls: []int{1}, After: true, Err: exception.Retryable("write", errors.New("try again"))},
		}
		c.Setup = func(_ *testing.T, e *batchtest.Env) {
			e.File("convert.yaml", tolerantFiles)
			e.File("in.csv", "id,name\n1,a\n2,b\n3,c\n4,d\n5,e\n6,f\n7,g\n")
		}
		c.Check = func(t *testing.T, e *batchtest.Env) {
			text, err := os.ReadFile(e.Path("out.csv"))
			require.NoError(t, err)
			require.Equal(t, "id,name\n1,a\n2,b\n4,d\n5,e\n6,f\n7,g\n", string(text))
		}
	})
}

const twoDatabases = `
job: copy
flow:
- step: copy
  chunk:
    size: 2
    reader: {query: {database: source, sql: "select id, name from people", key: [id], item: person}}
    writer: {table: copied}
`

// Reading from one database and writing to another needs nothing special: the
// reader's position is stored with the written rows. (Rule C18 covers a target
// outside the history's database.)
func TestACopyFromAnotherDatabaseSurvivesAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	everywhere(t, func(c *batchtest.Crash) {
		c.Job = c.Path("copy.yaml")
		c.Options = personItems()
		c.Databases = map[string]func(testing.TB) string{"source": testdb.SQLite}
		c.Setup = func(_ *testing.T, e *batchtest.Env) {
			e.File("copy.yaml", twoDatabases)
			e.Exec("create table copied (id bigint, name text)")
			e.ExecOn("source", "create table people (id integer primary key, name text not null)")
			e.ExecOn("source", "insert into people values (1, 'a'), (2, 'b'), (3, 'c'), (5, 'e'), (8, 'h')")
		}
		c.Check = func(_ *testing.T, e *batchtest.Env) {
			e.HasRows("select id, name from copied order by id", "1|a", "2|b", "3|c", "5|e", "8|h")
		}
	})
}
