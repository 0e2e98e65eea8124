package batchtest_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

const soakVariable = "SURFIN_SOAK"

// acrossDatabases crashes a job with its history and its data, called "data",
// in different databases (rule C18). The first pair is killed at every second
// commit, the second at every third; make soak has all.
func acrossDatabases(t *testing.T, thorough bool, describe func(c *batchtest.Crash)) {
	t.Helper()
	soak := os.Getenv(soakVariable) != ""
	for _, pair := range []struct {
		name          string
		history, data func(testing.TB) string
		every         int
	}{
		{"sqlite and postgres", testdb.SQLite, testdb.EmptyPostgres, 2},
		{"postgres and sqlite", testdb.Postgres, testdb.EmptySQLite, 3},
		{"two sqlite files", testdb.SQLite, testdb.EmptySQLite, 3},
		{"two postgres databases", testdb.Postgres, testdb.EmptyPostgres, 4},
	} {
		t.Run(pair.name, func(t *testing.T) {
			if testing.Short() && pair.name != "sqlite and postgres" {
				t.Skip("one pair is enough for a short run")
			}
			same := strings.HasPrefix(pair.name, "two")
			if chosen := thorough && pair.name == "two sqlite files"; same && !chosen && !soak {
				t.Skip("one pair of one kind runs with the other job, and all of them in make soak")
			}
			batchtest.CrashEverywhere(t, func(c *batchtest.Crash) {
				c.Database = pair.history
				c.Databases = map[string]func(testing.TB) string{"data": pair.data}
				c.Every = unlessSoak(pair.every)
				describe(c)
			})
		})
	}
}

const crossJob = `
job: cross
database: data
parameters:
  input: {type: path}
flow:
- step: create
  tasklet: {sql: "create table if not exists people (id bigint, name text, amount double precision)"}
- step: load
  chunk:
    size: 4
    reader: {csv: {path: "${params.input}", item: {id: int, name: string, amount: float}}}
    processor:
    - filter: item.id % 5 != 3
    writer: {table: people}
`

func TestALoadIntoAnotherDatabaseSurvivesAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	acrossDatabases(t, false, func(c *batchtest.Crash) {
		c.Job = c.Path("load.yaml")
		c.Params = []string{"input=" + c.Path("in.csv")}
		c.Setup = func(_ *testing.T, e *batchtest.Env) {
			e.File("load.yaml", crossJob)
			e.File("in.csv", people(10))
		}
		c.Check = func(t *testing.T, e *batchtest.Env) {
			require.Equal(t, []string{"8|8"}, e.RowsOn("data", "select count(*), count(distinct id) from people"))
		}
	})
}

const crossSkipsJob = `
job: cross
database: data
parameters:
  input: {type: path}
flow:
- step: create
  tasklet: {sql: "create table if not exists people (id bigint primary key, name text, amount double precision)"}
- step: load
  chunk:
    size: 4
    reader: {csv: {path: "${params.input}", item: {id: int, name: string, amount: float}}}
    writer: {table: people}
    skip: {limit: 10, errors: [unique, invalid_item]}
`

func TestALoadWithSkipsAndSplitsIntoAnotherDatabaseSurvivesAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	acrossDatabases(t, true, func(c *batchtest.Crash) {
		c.Job = c.Path("load.yaml")
		c.Params = []string{"input=" + c.Path("in.csv")}
		c.Setup = func(_ *testing.T, e *batchtest.Env) {
			e.File("load.yaml", crossSkipsJob)
			e.File("in.csv", people(3)+"2,twice,1\nx,not a number,1\n7,seven,7\n9,nine,9\n")
		}
		c.Check = func(t *testing.T, e *batchtest.Env) {
			require.Equal(t, []string{"1", "2", "3", "7", "9"}, e.RowsOn("data", "select id from people order by id"))
		}
	})
}

// oddNumbers reads 1 to 6; the first one cannot be read. look is called before the last one.
type oddNumbers struct {
	n    int
	look func()
}

func (r *oddNumbers) Read(context.Context) (int, error) {
	r.n++
	switch {
	case r.n == 1:
		return 0, item.Consumed(item.Meta{}, errors.New("odd"))
	case r.n == 6:
		r.look()
	case r.n > 6:
		return 0, io.EOF
	}
	return r.n, nil
}

type nowhere struct{}

func (nowhere) Write(context.Context, []int) error { return nil }

func TestASkipInAnotherDatabaseIsInTheHistoryBeforeTheStepEnds(t *testing.T) {
	t.Parallel()
	e := batchtest.New(t, batchtest.OnDatabase("data", testdb.EmptySQLite(t)))
	seen := 0
	step, err := chunk.New(chunk.Config{
		Name: "load", Size: 2, Database: e.Database("data"), Skip: chunk.LimitSkip{Limit: 1, Skippable: func(error) bool { return true }},
		Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
			look := func() {
				list, err := e.Repository().SkippedItems(t.Context(), ports.SkipFilter{})
				require.NoError(t, err)
				seen = len(list)
			}
			return chunk.Parts{
				Reader: item.EraseReader[int](&oddNumbers{look: look}), Writers: []item.Writer{item.EraseWriter[int](nowhere{})},
			}, nil
		},
	})
	require.NoError(t, err)
	e.RunStep(step).Completed().Counters("load", core.Counters{Read: 5, Write: 5, ReadSkip: 1, Commit: 3})
	require.Equal(t, 1, seen)
}
