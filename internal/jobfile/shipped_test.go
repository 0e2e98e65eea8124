package jobfile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/jobfile/docs"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/dedupe"
	itemfiles "github.com/surfin-batch/surfin/pkg/batch/adaptor/item/files"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/filter"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/group"
	itemhttp "github.com/surfin-batch/surfin/pkg/batch/adaptor/item/http"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/json"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/lookup"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/mapping"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/merge"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/query"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/route"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/table"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/text"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/validate"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/count"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/files"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/keyrange"
	partquery "github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/query"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/check"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/compare"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/fail"
	filetask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/files"
	httptask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/http"
	mailtask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/mail"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/migration"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/shell"
	sqltask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/sql"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/waitfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func shipped(t testing.TB) *registry.Registry {
	t.Helper()
	matchers, err := exception.NewMatchers(errorclass.Stock()...)
	require.NoError(t, err)
	reg, err := registry.New(slices.Concat(
		csv.Components(), dedupe.Components(), itemfiles.Components(), filter.Components(), group.Components(), itemhttp.Components(), json.Components(), lookup.Components(), mapping.Components(), merge.Components(), query.Components(),
		route.Components(), table.Components(), text.Components(), validate.Components(), check.Components(), compare.Components(), fail.Components(), filetask.Components(), httptask.Components(), mailtask.Components(), waitfile.Components(), shell.Components(), sqltask.Components(), migration.Components(nil),
		count.Components(), files.Components(), keyrange.Components(), partquery.Components(),
	), nil, matchers)
	require.NoError(t, err)
	return reg
}

func TestTheExamplesOfTheShippedComponentsLoad(t *testing.T) {
	t.Parallel()
	reg := shipped(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "migrations"), 0o700)) // the migration tasklet looks for it at load
	require.NoError(t, os.WriteFile(filepath.Join(dir, "migrations", "1_a.up.sql"), []byte("create table a(b int)"), 0o600))
	for _, c := range reg.Components() {
		page, err := docs.Describe(reg, c.Name)
		require.NoError(t, err)
		_, rest, ok := strings.Cut(string(page), "# "+string(c.Kind)+" `")
		require.True(t, ok)
		_, rest, ok = strings.Cut(rest, "```yaml\n")
		require.True(t, ok, "%s %s has no example", c.Kind, c.Name)
		example, _, _ := strings.Cut(rest, "```")
		require.True(t, strings.HasPrefix(example, "job: "), "%s %s: the example is no whole job", c.Kind, c.Name)
		_, err = jobfile.Parse(filepath.Join(dir, "example.yaml"), []byte(example), reg)
		require.NoError(t, err, "%s %s:\n%s", c.Kind, c.Name, example)
	}
}

const strikes = `
job: strikes
parameters:
  input: {type: path, default: in.csv}
  year: {type: int, default: 1990}
types:
  strike:
    airport: {type: string null, from: Airport Name, null_if: [""]}
    date: {type: date, from: Flight Date, format: M/d/yyyy}
    cost: {type: float, from: "Cost Total $"}
flow:
- step: tables
  tasklet:
    sql: |
      create table strike (line int primary key, airport text, date text, cost float);
      create table summary (airport text primary key, n int, cost float)
- step: load
  chunk:
    size: 2
    reader: {csv: {path: "${params.input}", item: strike}}
    processor:
    - filter: year(item.date) >= params.year
    - map: {line: meta.line, airport: "item.airport ?? 'unknown'"}
    writer: {table: {name: strike, mode: upsert, key: [line]}}
- step: count
  tasklet:
    sql:
      query: select count(*) n, sum(cost) total from strike where cost > ${steps.load.filtered}
      out: {n: int, total: float}
- step: summarize
  tasklet:
    sql: insert into summary select airport, count(*), sum(cost) from strike where line < 100 group by airport
- step: export
  chunk:
    reader: {query: {sql: "select airport, n, cost from summary where n <= ${steps.count.out.n}", key: [airport], item: {airport: string, n: int, cost: float}}}
    writer: {csv: "out/summary_${steps.count.out.n}.csv"}
`

func TestAFileWithTheShippedComponentsRunsFromCSVToTablesToCSV(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		dir := t.TempDir()
		input := "Airport Name,Flight Date,Other,Cost Total $\nAAA,1/2/1991,x,10\n,3/4/1992,y,2.5\nAAA,5/6/1980,z,7\nBBB,12/31/2000,\"a\nb\",0\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte(input), 0o600))
		engine := testengine.New(t, url)
		reg := shipped(t)
		file, err := jobfile.Parse(filepath.Join(dir, "job.yaml"), []byte(strikes), reg)
		require.NoError(t, err)
		compiled, err := file.Compile(jobfile.Deps{Provider: engine.Provider, Registry: reg})
		require.NoError(t, err)
		params, err := job.ValidateParameters(file.Parameters(), nil)
		require.NoError(t, err)
		exec, err := engine.Launcher.Run(t.Context(), compiled, params, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)

		require.Equal(t, []int64{2, 3, 5}, engine.Ints("select line from strike order by line"))
		load := engine.Step(exec, "load")
		require.EqualValues(t, 1, load.Counters.Filter)
		require.EqualValues(t, 3, load.Counters.Write)
		out, err := os.ReadFile(filepath.Join(dir, "out", "summary_2.csv"))
		require.NoError(t, err)
		require.Equal(t, "airport,n,cost\nAAA,1,10\nBBB,1,0\nunknown,1,2.5\n", string(out))
	})
}

// The example of every element runs as it is, and again as the next instance.
func TestTheFlowOfTheExamplesRunsOnBothDatabases(t *testing.T) {
	t.Parallel()
	const root = "../../"
	data, err := filepath.Abs(root + "example/birdstrikes/data/birdstrikes.csv")
	require.NoError(t, err)
	testdb.Each(t, func(t *testing.T, url string) {
		dir := t.TempDir()
		for _, name := range []string{"flow.yaml", "flow_child.yaml"} {
			text, err := os.ReadFile(root + "jobs/" + name)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		}
		engine := testengine.New(t, url)
		reg := shipped(t)
		file, err := jobfile.Load(filepath.Join(dir, "flow.yaml"), reg)
		require.NoError(t, err)
		compiled, err := file.Compile(jobfile.Deps{Provider: engine.Provider, Registry: reg})
		require.NoError(t, err)
		for run := int64(1); run <= 2; run++ {
			params, err := job.ValidateParameters(file.Parameters(), map[string]string{"input": data, "run": strconv.FormatInt(run, 10)})
			require.NoError(t, err)
			exec, err := engine.Launcher.Run(t.Context(), compiled, params, nil)
			require.NoError(t, err)
			require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
			require.Contains(t, exec.Gate, "holds")
			require.Equal(t, []int64{1985, 8, 83, 50, 33}, []int64{
				engine.Ints("select strikes from flow_result order by run")[run-1], engine.Ints("select skipped from flow_result order by run")[run-1],
				engine.Ints("select costs from flow_result order by run")[run-1], engine.Ints("select airports from flow_result order by run")[run-1],
				engine.Ints("select species from flow_result order by run")[run-1],
			})
			report, err := os.ReadFile(filepath.Join(dir, "out", "flow_"+strconv.FormatInt(run, 10)+".csv"))
			require.NoError(t, err)
			require.Equal(t, 30, strings.Count(string(report), "\n"))
		}
		require.Len(t, engine.Ints("select execution from flow_journal"), 2)
	})
}
