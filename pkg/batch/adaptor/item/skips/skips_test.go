//test:plain

package skips_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/skips"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

const reviewed = `
job: review
flow:
- step: load
  chunk:
    size: 4
    reader: {csv: {path: in.csv, item: {id: int, v: int}}}
    processor: {validate: {small: item.v < 100}}
    writer: {table: {name: loaded, create: true}}
    skip: {limit: 1000, errors: [invalid_item]}
- step: report
  chunk:
    size: 3
    reader: {skips: load}
    processor: {map: {only: true, skip: item.id, phase: item.phase, line: item.line, class: item.class, message: item.error, item: item.item, raw: item.raw}}
    writer: {table: reported}
`

func input(rows int) string {
	var b strings.Builder
	b.WriteString("id,v\n")
	for i := range rows {
		switch i % 5 {
		case 1:
			fmt.Fprintf(&b, "%d,x\n", i)
		case 3:
			fmt.Fprintf(&b, "%d,%d\n", i, 100+i)
		default:
			fmt.Fprintf(&b, "%d,1\n", i)
		}
	}
	return b.String()
}

func reader(t *testing.T, e *batchtest.Env, instance core.JobInstanceID, cfg skips.Config) item.Reader {
	t.Helper()
	out, err := skips.Components()[0].Types(&cfg, nil)
	require.NoError(t, err)
	made, err := skips.Components()[0].New(context.Background(), &cfg, registry.BuildContext{Skips: e.Repository(), Instance: instance, Out: out})
	require.NoError(t, err)
	r, ok := made.(item.Reader)
	require.True(t, ok)
	return r
}

func TestSkippedItemsAreReportedOnceOverARestart(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url))
		e.File("in.csv", input(50))
		// The 8th report fails: two of its chunks are committed by then.
		e.Exec("create table reported (skip bigint primary key, phase text, line bigint check (line <> 20), class text, message text, item text, raw text)")
		e.File("job.yaml", reviewed)
		first := e.Job(e.Path("job.yaml"))
		require.Equal(t, core.StatusFailed, first.Execution.Status)
		e.HasRows("select count(*) from reported", "6")
		e.Exec("alter table reported rename to before")
		e.Exec("create table reported (skip bigint primary key, phase text, line bigint, class text, message text, item text, raw text)")
		e.Exec("insert into reported select * from before")
		second := e.Job(e.Path("job.yaml"))
		require.Equal(t, core.StatusCompleted, second.Execution.Status, second.String())
		e.HasRows("select count(*), count(distinct line) from reported", "20|20")
		e.HasRows("select phase, class, item, raw from reported where line in (3, 5) order by line",
			`read|parse|NULL|1,x`, `process|validate|{"id":3,"v":103}|NULL`)

		all := testexample.Read[item.Row](reader(t, e, second.Execution.InstanceID, skips.Config{}))
		require.Len(t, all, 20)
		require.Len(t, testexample.Read[item.Row](reader(t, e, second.Execution.InstanceID, skips.Config{Phase: "read", Left: true})), 10)
		require.Len(t, testexample.Read[item.Row](reader(t, e, 0, skips.Config{Job: "review", Step: "load"})), 20)
		require.Len(t, testexample.Read[item.Row](reader(t, e, 0, skips.Config{Instance: int64(second.Execution.InstanceID)})), 20)
		require.Empty(t, testexample.Read[item.Row](reader(t, e, 0, skips.Config{Job: "other"})))
		require.Empty(t, testexample.Read[item.Row](reader(t, e, second.Execution.InstanceID+1, skips.Config{})))
		itemtest.Reader(t, itemtest.ReaderConfig{New: func(testing.TB) item.Reader {
			return reader(t, e, second.Execution.InstanceID, skips.Config{})
		}})
	})
}

func TestTheLastSkipIsFixedWhenTheReaderIsOpened(t *testing.T) {
	t.Parallel()
	e := batchtest.New(t)
	e.File("job.yaml", strings.Replace(strings.Split(reviewed, "- step: report")[0], "flow:", "parameters: {n: {type: int}}\nflow:", 1))
	e.File("in.csv", input(10))
	require.Equal(t, core.StatusCompleted, e.Job(e.Path("job.yaml"), "n=1").Execution.Status)
	r := reader(t, e, 0, skips.Config{Job: "review"})
	require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
	require.NoError(t, r.Fill(t.Context(), r.NewItems(1), 1))
	at, err := r.Component().(item.Positioner).Position()
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, e.Job(e.Path("job.yaml"), "n=2").Execution.Status)
	again := reader(t, e, 0, skips.Config{Job: "review"})
	require.NoError(t, again.Component().(item.Opener).Open(t.Context(), at))
	items := again.NewItems(10)
	require.ErrorIs(t, again.Fill(t.Context(), items, 10), io.EOF)
	n := items.Len()
	require.Equal(t, 3, n, "4 skips were there")
	require.Len(t, testexample.Read[item.Row](reader(t, e, 0, skips.Config{Job: "review"})), 8)
}

func TestAConfigurationThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	err := (&skips.Config{Job: "a", Instance: 1, Phase: "wrote"}).Validate()
	require.ErrorContains(t, err, "remove one of job and instance")
	require.ErrorContains(t, err, "read, process, write")
	require.ErrorContains(t, (&skips.Config{Instance: -1}).Validate(), "surfin list")
}

func TestAStepIsReadWithItsPartitionsAndHasToBeThere(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url))
		parts := strings.NewReplacer("path: in.csv", `path: "in${part.index}.csv"`, "- step: load\n", "- step: load\n  partition: {by: {count: 2}}\n").Replace(reviewed)
		e.File("in0.csv", input(10))
		e.File("in1.csv", input(5))
		e.File("job.yaml", strings.Replace(parts, "{table: reported}", "{table: {name: reported, create: true}}", 1))
		require.Equal(t, core.StatusCompleted, e.Job(e.Path("job.yaml")).Execution.Status)
		e.HasRows("select count(*) from reported", "6")

		e.File("wrong.yaml", strings.Replace(reviewed, "{skips: load}", "{skips: laod}", 1))
		_, err := e.Launch(e.Path("wrong.yaml"))
		require.ErrorContains(t, err, "there is no step laod (did you mean load?)")
		require.ErrorContains(t, err, "wrong.yaml:14:21:")
	})
}
