package batchtest_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// everywhere crashes a job on SQLite, PostgreSQL and MariaDB. A run's database is
// made from a template: making the tables in a schema of each run took longer
// than the runs. Every second commit is killed at, before and after: a
// database is the same after one commit and before the next. PostgreSQL has
// every seventh one; make soak kills at all.
func everywhere(t *testing.T, describe func(c *batchtest.Crash)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		batchtest.CrashEverywhere(t, func(c *batchtest.Crash) {
			c.Database = testdb.SQLite
			c.Every = unlessSoak(2)
			describe(c)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		batchtest.CrashEverywhere(t, func(c *batchtest.Crash) {
			c.Database = testdb.Postgres
			c.Every = unlessSoak(7)
			describe(c)
		})
	})
	t.Run("mysql", func(t *testing.T) {
		batchtest.CrashEverywhere(t, func(c *batchtest.Crash) {
			c.Database = testdb.MySQL
			c.Every = unlessSoak(13)
			describe(c)
			setUp := c.Setup
			c.Setup = func(t *testing.T, e *batchtest.Env) {
				setUp(t, e)
				createOutside(t, c.Job)
			}
		})
	})
}

// createOutside moves CREATE out of transactions, which it would commit (rule MY3).
func createOutside(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file) //nolint:gosec // of the test
	require.NoError(t, err)
	text = []byte(strings.ReplaceAll(string(text), `  tasklet: {sql: "create table `, "  transaction: {propagation: NOT_SUPPORTED}\n  tasklet: {sql: \"create table if not exists "))
	require.NoError(t, os.WriteFile(file, text, 0o600)) //nolint:gosec // of the test
}

// unlessSoak returns every, the step between killed commits.
func unlessSoak(every int) int {
	if os.Getenv(soakVariable) != "" {
		return 0
	}
	return every
}

func onlyInSoak(n int) int {
	if os.Getenv(soakVariable) == "" {
		return 0
	}
	return n
}

func people(n int) string {
	var b strings.Builder
	b.WriteString("id,name,amount\n")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "%d,\"name, %d\",%d.5\n", i, i, i)
	}
	return b.String()
}

const plainJob = `
job: plain
parameters:
  input: {type: path}
flow:
- step: create
  tasklet: {sql: "create table people (id bigint, name text, amount double precision)"}
- step: load
  chunk:
    size: 4
    reader: {csv: {path: "${params.input}", item: {id: int, name: string, amount: float}}}
    processor:
    - filter: item.id % 5 != 3
    writer: {table: people}
`

func TestAPlainLoadSurvivesAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	everywhere(t, func(c *batchtest.Crash) {
		c.Job = c.Path("load.yaml")
		c.Params = []string{"input=" + c.Path("in.csv")}
		c.Setup = func(_ *testing.T, e *batchtest.Env) {
			e.File("load.yaml", plainJob)
			e.File("in.csv", people(10))
		}
		c.Check = func(_ *testing.T, e *batchtest.Env) {
			e.HasRows("select count(*), count(distinct id) from people", "8|8")
		}
	})
}

func TestAPlainLoadSurvivesKillsOfItsRestarts(t *testing.T) {
	t.Parallel()
	everywhere(t, func(c *batchtest.Crash) {
		c.Again = 2
		c.Job = c.Path("load.yaml")
		c.Params = []string{"input=" + c.Path("in.csv")}
		c.Setup = func(_ *testing.T, e *batchtest.Env) {
			e.File("load.yaml", plainJob)
			e.File("in.csv", people(6))
		}
	})
}

const upsertJob = `
job: upsert
parameters:
  input: {type: path}
flow:
- step: create
  tasklet: {sql: "create table people (id bigint primary key, name text, amount double precision)"}
- step: load
  chunk:
    size: 3
    reader: {csv: {path: "${params.input}", item: {id: int, name: string, amount: float}}}
    writer: {table: {name: people, mode: upsert, key: [id]}}
`

func TestAnUpsertSurvivesAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	everywhere(t, func(c *batchtest.Crash) {
		c.Job = c.Path("load.yaml")
		c.Params = []string{"input=" + c.Path("in.csv")}
		c.Setup = func(_ *testing.T, e *batchtest.Env) {
			e.File("load.yaml", upsertJob)
			e.File("in.csv", people(4)+"2,second,20\n4,fourth,40\n2,last,2000\n")
		}
		c.Check = func(_ *testing.T, e *batchtest.Env) {
			e.HasRows("select id, name from people where id in (2, 4) order by id", "2|last", "4|fourth")
		}
	})
}

const filesJob = `
job: files
parameters:
  input: {type: path}
  out:   {type: path}
flow:
- step: convert
  chunk:
    size: 3
    reader: {csv: {path: "${params.input}", item: {id: int, name: string, amount: float}}}
    processor:
    - filter: item.id % 4 != 0
    writer:
    - csv: {path: "${params.out}.csv"}
    - jsonl: {path: "${params.out}.jsonl"}
`

func TestFilesToFilesSurviveAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	everywhere(t, func(c *batchtest.Crash) {
		c.Again = 1
		c.Job = c.Path("convert.yaml")
		c.Params = []string{"input=" + c.Path("in.csv"), "out=" + c.Path("out")}
		c.Setup = func(_ *testing.T, e *batchtest.Env) {
			e.File("convert.yaml", filesJob)
			e.File("in.csv", people(9))
		}
		c.Check = func(t *testing.T, e *batchtest.Env) {
			text, err := os.ReadFile(e.Path("out.csv"))
			require.NoError(t, err)
			require.Equal(t, 8, strings.Count(string(text), "\n"))
			require.NoFileExists(t, e.Path("out.csv.part"))
		}
	})
}

type saver struct{ db tx.Database }

func newSaver(p tx.Provider) (saver, error) {
	db, err := p.Database("")
	return saver{db}, err
}

func (w saver) Write(ctx context.Context, items []person) error {
	session, err := gormdb.Session(ctx, w.db)
	if err != nil {
		return err
	}
	return session.Table("people").Create(items).Error
}

const gormJob = `
job: gorm
parameters:
  input: {type: path}
flow:
- step: load
  chunk:
    size: 2
    reader: {csv: {path: "${params.input}", item: person}}
    writer: saver
`

func TestAWriterOnGormSurvivesAKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	everywhere(t, func(c *batchtest.Crash) {
		c.Job = c.Path("load.yaml")
		c.Params = []string{"input=" + c.Path("in.csv")}
		c.Options = append(personItems(), batch.Writer[person]("saver", newSaver))
		c.Setup = func(_ *testing.T, e *batchtest.Env) {
			e.File("load.yaml", gormJob)
			e.File("in.csv", "id,name\n1,a\n2,b\n3,c\n")
			e.Exec("create table people (id bigint, name text)")
		}
	})
}
