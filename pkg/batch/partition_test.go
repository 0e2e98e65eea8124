package batch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

func app(t *testing.T, url string, opts ...fx.Option) (*batch.App, string) {
	t.Helper()
	s, err := settings.Load(settings.Source{Dir: t.TempDir(), Environ: []string{"DATABASE_URL=" + url}})
	require.NoError(t, err)
	s.AutoMigrate = settings.MigrateAlways
	app, err := batch.New(t.Context(), s, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.WithoutCancel(t.Context()))) })
	return app, t.TempDir()
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func stepsOf(t *testing.T, app *batch.App, exec *batch.Execution) map[string]core.StepExecution {
	t.Helper()
	steps, err := app.Repository.Steps(t.Context(), exec.ID)
	require.NoError(t, err)
	all := map[string]core.StepExecution{}
	for _, s := range steps {
		all[s.Name] = s
	}
	return all
}

func TestOfEightFilesAPoisonedOneFailsAndARestartLoadsItAlone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		app, dir := app(t, url)
		for i := range 8 {
			text := "id,name\n"
			for n := range 5 {
				text += fmt.Sprintf("%d,%d\n", 10*i+n, n)
			}
			if i == 5 {
				text += "57,7\n" // a duplicate
			}
			write(t, dir, fmt.Sprintf("in%d.csv", i), text)
		}
		file := write(t, dir, "job.yaml", `
job: load
flow:
- step: create
  tasklet: {sql: "create table loaded (id int primary key, name int, source text); insert into loaded values (57, 0, 'poison')"}
- step: load
  partition: {by: {files: "in*.csv"}, workers: 4}
  chunk:
    size: 2
    reader: {csv: {path: "${part.path}", item: {id: int, name: int}}}
    processor: {map: {source: part.name}}
    writer: {table: loaded}
  expect: written == 41
`)
		exec, err := app.Run(t.Context(), batch.RunRequest{File: file})
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "1 of 8 partitions failed: in5.csv: ")
		steps := stepsOf(t, app, exec)
		require.Len(t, steps, 10)
		require.EqualValues(t, 39, steps["load"].Counters.Write)

		clean := write(t, dir, "clean.yaml", "job: clean\nflow:\n- step: clean\n  tasklet: {sql: delete from loaded where id = 57}\n")
		exec, err = app.Run(t.Context(), batch.RunRequest{File: clean})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		write(t, dir, "in8.csv", "id,name\n80,0\n") // it comes too late
		exec, err = app.Run(t.Context(), batch.RunRequest{File: file})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		steps = stepsOf(t, app, exec)
		require.Len(t, steps, 2)
		require.EqualValues(t, 2, steps["load:in5.csv"].Counters.Write, "from where it ended")
		load := steps["load"]
		require.EqualValues(t, 41, load.Total().Write)
	})
}

type months struct{ year int }

type monthsConfig struct {
	Year int `key:"year" main:"true" required:"true" doc:"The year."`
}

func (m *months) Partition(context.Context, *batch.View) ([]batch.Partition, error) {
	var parts []batch.Partition
	for n := time.January; n <= time.December; n++ {
		values := &batch.ExecutionContext{}
		if err := values.Put("from", row.NewDate(m.year, n, 1)); err != nil {
			return nil, err
		}
		parts = append(parts, batch.Partition{Name: n.String(), Context: values})
	}
	return parts, nil
}

func TestAPartitionerAndADeciderOfTheApplicationTakePartInAJob(t *testing.T) {
	t.Parallel()
	decide := batch.Decider("enough", func() core.Decider {
		return batch.DeciderFunc(func(_ context.Context, v *batch.View) (string, error) {
			return fmt.Sprintf("PARTS %d", v.Steps["note"].Counters.Write), nil
		})
	})
	partition := batch.Partitioner("months", func(c monthsConfig) *months { return &months{c.Year} }, batch.Part[batch.Date]("from"))
	testdb.Each(t, func(t *testing.T, url string) {
		app, dir := app(t, url, partition, decide)
		file := write(t, dir, "job.yaml", `
job: year
flow:
- step: create
  tasklet: {sql: "create table month (name text, n int, since date)"}
- step: note
  partition: {by: {months: 2024}, workers: 2}
  tasklet: {sql: "insert into month values (${part.name}, ${part.index}, ${part.from})"}
- decide: enough
  decider: enough
  next: {PARTS 12: {end: {exit: ALL}}, "*": fail}
`)
		exec, err := app.Run(t.Context(), batch.RunRequest{File: file})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, "ALL", exec.ExitCode)
		require.Equal(t, core.StatusCompleted, stepsOf(t, app, exec)["note:February"].Status)
	})
}

func TestAPartOfATypeThatIsNotStoredIsRefused(t *testing.T) {
	t.Parallel()
	reg, err := assembly.NewRegistry(batch.Partitioner("months", func() *months { return &months{} }, batch.Part[[]string]("from")))
	require.NoError(t, err)
	c, ok := reg.Component(registry.KindPartitioner, "months")
	require.True(t, ok)
	_, err = c.Parts(nil)
	require.ErrorContains(t, err, "from: a []string cannot be a value of a part")
	_, err = assembly.NewRegistry(batch.Decider("enough", func() *months { return &months{} }))
	require.ErrorContains(t, err, `decider "enough": the constructor returns *batch_test.months, which is not a core.Decider`)
}

func TestTheRangesOfAKeyAreReadSideBySide(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		app, dir := app(t, url)
		exec, err := app.Run(t.Context(), batch.RunRequest{File: write(t, dir, "job.yaml", `
job: migrate
flow:
- step: create
  tasklet:
    sql: |
      create table kunde (id int primary key, name text);
      create table customer (id int primary key, name text);
      insert into kunde select n.a * 10 + m.a, 'x' from
        (select 0 a union select 1 union select 2 union select 3 union select 4) n,
        (select 0 a union select 1 union select 7 union select 8 union select 9) m
- step: customers
  partition: {by: {range: {table: kunde, key: id, parts: 7, where: "name = ${'x'}"}}, workers: 4}
  chunk:
    size: 2
    reader: {query: {sql: "select id, name from kunde where id between ${part.min} and ${part.max}", key: [id], item: {id: int, name: string}}}
    writer: {table: customer}
- step: regions
  partition: {by: {query: {sql: "select id as n, name from kunde where id < 2 order by id", item: {n: int, name: string}}}, workers: 2}
  tasklet: {sql: "update customer set name = 'y' where id = ${part.n} and 'x-2' >= ${part.name}"}
- step: counted
  partition: {by: {count: 3}, workers: 1}
  tasklet: {sql: "delete from customer where id % ${part.count} = ${part.index} and name = 'y'"}
`)})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		steps := stepsOf(t, app, exec)
		require.EqualValues(t, 25, steps["customers"].Counters.Write)
		require.EqualValues(t, 2, steps["regions"].Counters.Write)
		require.EqualValues(t, 2, steps["counted"].Counters.Write)
		require.Contains(t, steps, "customers:0..8")
		require.Contains(t, steps, "regions:x-2")
	})
}
