//test:plain

package compare_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/compare"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func compared(name, cfg string) string {
	return fmt.Sprintf("job: %s\nflow:\n- step: compare\n  tasklet:\n    compare:\n      left: {sql: \"select * from a where id < ${params.below}\"}\n      right: {database: other, table: b}\n%s\nparameters: {below: {type: int, default: 100}}\n", name, cfg)
}

func TestRowsOfTwoDatabasesAreComparedByKeyAndValue(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url), batchtest.OnDatabase("other", testdb.SQLite(t)))
		e.Exec("create table a (id bigint, part varchar(10), amount numeric(10,2), born date, at timestamp, good boolean, note text)")
		e.Exec("insert into a values (1, 'a', 1.10, '2026-01-02', '2026-01-02 03:04:05', true, null), (2, 'Z', 2, '2026-01-03', null, false, 'x'), (2, 'a', 0.1, null, null, null, 'same'), (10, 'ä', 7, null, null, null, '')")
		e.ExecOn("other", "create table b (ID integer, part text, amount text, born text, at text, good int, note text)")
		e.ExecOn("other", "insert into b values (10, 'ä', 7.0, null, null, null, null), (1, 'a', '1.1', '2026-01-02', '2026-01-02T03:04:05Z', 1, null), (2, 'a', 0.1, null, null, null, 'same'), (3, 'b', 0.2, null, null, null, null)")
		r := e.Job(e.File("c.yaml", compared("c", "      key: [id, part]\n      sums: [amount]"))).Failed("4 rows and 4, 2 equal, 1 differing, 1 only left, 1 only right; the sum of amount is 10.2 and 8.4; " +
			`only left: id 2, part "Z"; only right: ID 3, part "b"; id 10, part "ä": note "" and null`)
		out := r.Step("compare").Out
		require.Equal(t, []any{int64(4), int64(4), int64(2), int64(1), int64(1), int64(1), `{"amount":["10.2","8.4"]}`},
			[]any{out["left"], out["right"], out["equal"], out["differing"], out["only_left"], out["only_right"], out["sums"]})
		e.Job(e.File("same.yaml", compared("same", "      key: [id, part]\n      columns: [amount]\n      severity: warn")), "below=2").Completed()
	})
}

func TestWithoutAKeyEachSideIsOneRow(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url))
		e.Exec("create table a (id int, amount numeric(10,2))")
		e.Exec("insert into a values (1, 1.5), (2, 2)")
		text := "job: %s\nflow:\n- step: compare\n  tasklet:\n    compare: {left: {sql: \"select count(*), sum(amount) from a\"}, right: {sql: \"%s\"}}\n"
		e.Job(e.File("same.yaml", fmt.Sprintf(text, "same", "select 2 as n, 3.5 as total"))).Completed()
		e.Job(e.File("other.yaml", fmt.Sprintf(text, "other", "select 2 as n, 3.4 as total"))).Failed("column 2 (sum")
		e.Job(e.File("many.yaml", fmt.Sprintf(text, "many", "select id, amount from a"))).Failed("the right returned more than one row: set the `key`")
		e.Job(e.File("none.yaml", fmt.Sprintf(text, "none", "select id, amount from a where id > 9"))).Failed("the right returned no row")
	})
}

const copied = `job: copied
timezone: Europe/Berlin
flow:
- step: copy
  chunk:
    reader: {query: {database: other, sql: "select * from old", key: [id], item: {id: int, at: timestamp null, said: timestamp null, day: date, begins: string, plain: string}}}
    writer: {table: new}
`

const comparedLocally = `job: %s
timezone: Europe/Berlin
flow:
- step: compare
  tasklet: {compare: {left: {database: other, table: old}, right: {table: new}, key: [id]}}
- step: keys
  tasklet: {compare: {left: {database: other, sql: "select at, id from old where at is not null"}, right: {sql: "select at, id from new where at is not null"}, key: [at]}}
- step: one
  tasklet: {compare: {left: {database: other, sql: "select at, said from old where id = 1"}, right: {sql: "select at, said from new where id = 1"}}}
`

// Rules D5, D8a.
func TestLocalTimesAreComparedInTheTimeZoneOfTheJob(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url), batchtest.OnDatabase("other", testdb.SQLite(t)))
		e.ExecOn("other", "create table old (id integer primary key, at timestamp, said text, day date, begins text, plain text)")
		e.ExecOn("other", "insert into old values (1, '2026-07-01 10:00:00', '2026-07-01 10:00:00', '2026-07-01', '2026-07-01', '2026-07-01 10:00:00'), "+
			"(2, '2026-10-25 02:30:00', '2026-10-25T02:30:00', '2026-07-01', '2026-07-01', '2026-07-01 10:00:00'), "+
			"(3, '2026-12-01T10:00:00Z', '2026-12-01T10:00:00Z', '2026-12-01', '2026-12-01', '2026-07-01 10:00:00'), (4, null, null, '2026-12-01', '2026-12-01', '2026-07-01 10:00:00')")
		at, plain, zone := "timestamptz", "timestamp", ""
		switch {
		case strings.HasPrefix(url, "sqlite:"):
			at, plain = "timestamp", "text"
		case strings.HasPrefix(url, "mysql:"):
			at, plain, zone = "datetime(6)", "text", "Z"
		}
		e.Exec("create table new (id integer primary key, at " + at + ", said " + at + ", day date, begins " + at + ", plain " + plain + ")")
		e.Job(e.File("copied.yaml", copied)).Completed()
		e.Job(e.File("equal.yaml", fmt.Sprintf(comparedLocally, "equal"))).Completed()
		e.Exec("update new set at = '" + strings.TrimSuffix("2026-07-01T10:00:00Z", zone) + "' where id = 1")
		e.Job(e.File("other.yaml", fmt.Sprintf(comparedLocally, "other"))).
			Failed("4 rows and 4, 3 equal, 1 differing, 0 only left, 0 only right; id 1: at 2026-07-01T08:00:00Z and 2026-07-01T10:00:00Z")
	})
}

func TestAKeyThatAMergeWouldMisreadIsRefused(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url))
		for i, c := range []struct{ left, right, want string }{
			{"select 1 as k union all select 1", "select 1 as k", "the left: the key is not unique: k 1 appears twice"},
			{"select 1 as k", "select cast(null as integer) as k", "the right: the key k is null"},
			{"select 1 as k", "select cast('1' as text) as k", "which have no common order: cast one of them"},
			{"select 1 as k", "select 1 as kk", "the right: there is no column k of the key (did you mean kk?)"},
			{"select 1 as k, 2 as v", "select 1 as k, 2 as w", "the right has no column v"},
		} {
			if strings.HasPrefix(url, "mysql:") {
				c.right = strings.ReplaceAll(c.right, "as text", "as char")
			}
			text := fmt.Sprintf("job: j%d\nflow:\n- step: compare\n  tasklet:\n    compare: {left: {sql: \"%s\"}, right: {sql: \"%s\"}, key: [k]}\n", i, c.left, c.right)
			e.Job(e.File(fmt.Sprintf("%d.yaml", i), text)).Failed(c.want)
		}
	})
}

func TestAStopIsHeardAndATransactionRefused(t *testing.T) {
	t.Parallel()
	_, db := testengine.Database(t, testdb.SQLite(t))
	numbers := compare.Side{SQL: registry.SQL{Parts: []string{"with recursive n(k) as (select 1 union all select k + 1 from n where k < 10000) select k from n"}}}
	task, err := compare.New(db, db, compare.Config{Left: numbers, Right: numbers, Key: []string{"k"}})
	require.NoError(t, err)
	stop := make(chan struct{})
	close(stop)
	require.ErrorIs(t, task.Execute(t.Context(), &core.StepContribution{Stop: stop}), core.ErrStopped)
	err = tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error { return task.Execute(ctx, &core.StepContribution{}) })
	require.ErrorContains(t, err, "omit `transaction`")
}

func TestMemoryDoesNotGrowWithTheRows(t *testing.T) { //nolint:paralleltest // it measures the heap
	testengine.EachDatabase(t, func(t *testing.T, db tx.Database) {
		const rows = 40_000
		pad := "substr(cast(k + 1000000000 as text) || '" + strings.Repeat("x", 1000) + "', 1, 1000)"
		numbers := compare.Side{SQL: registry.SQL{Parts: []string{fmt.Sprintf(
			"with recursive n(k) as (select 1 union all select k + 1 from n where k < %d) select k, %s as t from n", rows, pad)}}}
		task, err := compare.New(db, db, compare.Config{Left: numbers, Right: numbers, Key: []string{"k"}, Sums: []string{"k"}})
		require.NoError(t, err)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		c := &core.StepContribution{}
		require.NoError(t, task.Execute(t.Context(), c))
		runtime.ReadMemStats(&after)
		require.EqualValues(t, rows, c.Out["equal"])
		require.Less(t, after.HeapSys, before.HeapSys+30<<20)
	})
}

func TestWrongConfigurationsAreRefusedAtTheirKey(t *testing.T) {
	t.Parallel()
	sql := registry.SQL{Parts: []string{"select 1"}}
	side := compare.Side{SQL: sql}
	for key, c := range map[string]compare.Config{
		"left":       {Right: side},
		"right.sql":  {Left: side, Right: compare.Side{Table: "a", SQL: sql}},
		"left.table": {Left: compare.Side{Table: "a"}, Right: side},
		"key":        {Left: side, Right: side, Sums: []string{"a"}},
		"show":       {Left: side, Right: side, Show: -1},
	} {
		var at *registry.ConfigError
		require.ErrorAs(t, c.Validate(), &at)
		require.Equal(t, key, at.Key)
	}
}
