package batch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// 90 % of the rows have 1 % of the keys (rule P10).
const skewedRows = `
- step: fill
  tasklet:
    sql: |
      create table src (id bigint primary key, value int);
      create table dst (id bigint primary key, value int);
      insert into src with recursive s(i) as (select 1 union all select i + 1 from s where i < 20000)
      select case when i % 10 = 0 then i * 1000 else i end, i from s
`

func TestPartsOfASkewedTableAreEvenAndHaveEveryRowOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		app, dir := app(t, url)
		run := func(name, step string) (map[string]core.StepExecution, *batch.Execution) {
			exec, err := app.Run(t.Context(), batch.RunRequest{File: write(t, dir, name+".yaml", "job: "+name+"\nflow:"+step)})
			require.NoError(t, err)
			require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
			return stepsOf(t, app, exec), exec
		}
		steps, _ := run("load", skewedRows+`
- step: load
  partition: {by: {range: {table: src, key: id, parts: 7}}, workers: 3}
  chunk:
    size: 500
    reader: {query: {sql: "select id, value from src where id between ${part.min} and ${part.max}", key: [id], item: {id: int, value: int}}}
    writer: {table: dst}
  expect: written == 20000
- step: compare
  tasklet: {compare: {left: {table: src}, right: {table: dst}, key: [id]}}
`)
		var parts, largest int64
		for name, s := range steps {
			if strings.HasPrefix(name, "load:") {
				parts++
				largest = max(largest, s.Counters.Write)
			}
		}
		require.EqualValues(t, 7, parts)
		require.LessOrEqual(t, float64(largest), 1.3*20000/7)
		require.EqualValues(t, 2858, largest, "the table is small enough to be counted")

		for _, parts := range []string{"", ", parts: auto"} {
			steps, exec := run(fmt.Sprintf("auto%d", len(parts)), `
- step: touch
  partition: {by: {range: {table: src, key: id`+parts+`}}, workers: 3}
  tasklet: {sql: "update dst set value = value + 1 where id between ${part.min} and ${part.max}"}
`)
			require.Len(t, steps, 3, "two parts of 10,000 rows")
			require.EqualValues(t, 20000, steps["touch"].Counters.Write, exec.ID)
		}
	})
}

func TestPartsIsANumberOrAuto(t *testing.T) {
	t.Parallel()
	app, dir := app(t, "sqlite:"+t.TempDir()+"/a.db")
	write(t, dir, "in.csv", "id\n1\n2\n")
	n := 0
	for of, want := range map[string]string{
		"lines: auto":                              "",
		"lines: {}":                                "",
		"lines: \"1\"":                             "",
		"lines: {parts: \"${params.n}\"}":          "",
		"lines: 0":                                 "job.yaml:5:27: parts must be at least 1",
		"lines: {parts: \"${params.n - 2}\"}":      "job.yaml:5:35: parts must be at least 1",
		"lines: some":                              "job.yaml:5:27: parts: \"some\" is not a number",
		"range: {table: t, key: k, parts: 2.5}":    "job.yaml:5:53: parts: \"2.5\" is not a number",
		"range: {table: t, key: k, parts: 100001}": "job.yaml:5:53: partitioner range: parts: 100001 is not between 1 and 100000",
	} {
		n++
		exec, err := app.Run(t.Context(), batch.RunRequest{File: write(t, dir, "job.yaml", fmt.Sprintf("job: parts%d", n)+`
parameters: {n: {type: int, default: 2}}
flow:
- step: read
  partition: {by: {`+of+`}}
  chunk:
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer: {jsonl: {path: out.jsonl, together: true}}
`)})
		if want != "" {
			if err == nil {
				require.Equal(t, core.StatusFailed, exec.Status, of)
				require.Contains(t, exec.Error, want, of)
				continue
			}
			require.ErrorContains(t, err, want, of)
			continue
		}
		require.NoError(t, err, of)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	}
}
