package query_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

const sinceJob = `
job: copy
parameters:
  run:  {type: int}
  fail: {type: int, default: 0, identifying: false}
flow:
- step: load
  chunk:
    size: 2
    reader:
      query:
        sql: select id, changed_at from src
        key: [id]
        since: changed_at
        item: {id: int, changed_at: timestamp}
    processor: {validate: item.id != params.fail}
    writer: {table: {name: dst, mode: upsert, key: [id]}}
`

func changed(e *batchtest.Env, second int, ids ...int) {
	for _, id := range ids {
		e.Exec(fmt.Sprintf("insert into src (id, changed_at) values (%d, '2026-11-23T10:00:%02d.000000Z') on conflict (id) do update set changed_at = excluded.changed_at", id, second))
	}
}

func sinceEnv(t *testing.T, url, job string) *batchtest.Env {
	e := batchtest.New(t, batchtest.On(url))
	e.File("job.yaml", job)
	for _, table := range []string{"src", "dst"} {
		e.Exec("create table " + table + " (id integer primary key, changed_at timestamp)")
	}
	return e
}

// Rule IL1.
func TestAnInstanceReadsWhatIsNewerThanWhatTheLastCompleteOneRead(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := sinceEnv(t, url, sinceJob)
		read := func(want int, params ...string) {
			t.Helper()
			r := e.Job(e.Path("job.yaml"), params...).Completed()
			require.EqualValues(t, want, r.Step("load").Counters.Read, "%v", params)
		}
		changed(e, 1, 1, 2, 3, 4, 5)
		read(5, "run=1")
		changed(e, 6, 1, 2)
		changed(e, 7, 6)
		e.Job(e.Path("job.yaml"), "run=2", "fail=6").Failed("item.id != params.fail")
		changed(e, 8, 7, 2)
		read(1, "run=2")
		e.HasRows("select id from dst where id > 5", "6")
		read(2, "run=3")
		read(0, "run=4")
		changed(e, 9, 8)
		e.Job(e.Path("job.yaml"), "run=5", "fail=8").Failed("item.id != params.fail")
		read(1, "run=6")
		_, err := e.Repository().Purge(t.Context(), ports.PurgeFilter{EndedBefore: time.Now().Add(time.Hour)}, "test")
		require.NoError(t, err)
		changed(e, 10, 9)
		read(1, "run=7")
		e.HasRows("select count(*), max(id) from dst", "9|9")
	})
}

func TestAnOverlapReadsAgainAndFirstIsWhereItBegins(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := sinceEnv(t, url, strings.Replace(sinceJob, "since: changed_at", "since: changed_at\n        overlap: 2s\n        first: 2026-11-23T10:00:02Z", 1))
		changed(e, 1, 1)
		changed(e, 2, 2)
		changed(e, 5, 3)
		require.EqualValues(t, 2, e.Job(e.Path("job.yaml"), "run=1").Completed().Step("load").Counters.Read)
		changed(e, 3, 4) // late
		changed(e, 2, 5) // too late
		require.EqualValues(t, 2, e.Job(e.Path("job.yaml"), "run=2").Completed().Step("load").Counters.Read)
		e.HasRows("select id from dst order by id", "2", "3", "4")
	})
}

func TestAColumnOfSinceThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	e := sinceEnv(t, testdb.SQLite(t), sinceJob)
	e.Exec("insert into src (id) values (1)")
	e.Job(e.Path("job.yaml"), "run=1").Failed("query: since changed_at: it is null in some rows, which no instance would read")
	for from, want := range map[string]string{
		"since: id\n        overlap: 2s":      "field id is neither a timestamp nor a date",
		"since: change_at":                    "the item has no field change_at (did you mean changed_at?)",
		"overlap: 2s":                         "it needs `since`",
		"since: changed_at\n        first: x": "x",
	} {
		e.File("bad.yaml", strings.Replace(sinceJob, "since: changed_at", from, 1))
		r, err := e.Launch(e.Path("bad.yaml"), "run=1")
		if err == nil {
			r.Failed(want)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}
