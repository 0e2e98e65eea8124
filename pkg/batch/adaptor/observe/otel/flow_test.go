package otel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/otel"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

const nestedJob = `
job: main
flow:
- step: load
  partition: {by: {files: "in-*.csv"}, workers: 2}
  chunk:
    reader: {csv: {path: "${part.path}", item: {id: int}}}
    writer: {table: {name: ids, create: true}}
  expect: written == 4
- split: both
  branches:
  - - {step: left, tasklet: {sql: select 1}}
  - - {step: right, tasklet: {sql: select 1}}
- job: child
  file: child.yaml
`

func TestPartitionsBranchesAndChildJobsOfARealJobNest(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		r := newReceiver(t)
		sender := &otel.Sender{Endpoint: r.URL, Chunks: 10}
		e := batchtest.New(t, batchtest.On(url), batchtest.With(batch.Observe(sender)))
		e.Exec("create table ids (id bigint)")
		e.File("in-a.csv", "id\n1\n2\n3\n")
		e.File("in-b.csv", "id\n4\n")
		e.File("child.yaml", "job: child\nflow:\n- {step: only, tasklet: {sql: select 1}}\n")
		e.Job(e.File("job.yaml", nestedJob)).Completed()
		sender.Close(t.Context())
		tree := r.tree()
		var paths []string
		for path, list := range tree {
			require.Len(t, list, 1, path)
			paths = append(paths, path)
		}
		require.ElementsMatch(t, []string{
			"job main", "job main/step load",
			"job main/step load/step load:in-a.csv", "job main/step load/step load:in-a.csv/chunk",
			"job main/step load/step load:in-b.csv", "job main/step load/step load:in-b.csv/chunk",
			"job main/step left", "job main/step right",
			"job main/step child", "job main/step child/job child", "job main/step child/job child/step only",
		}, paths)
		for _, pair := range [][2]string{
			{"job main/step load", "job main"}, {"job main/step load/step load:in-a.csv", "job main/step load"},
			{"job main/step child/job child", "job main/step child"}, {"job main/step load/step load:in-b.csv/chunk", "job main/step load/step load:in-b.csv"},
		} {
			within(t, tree[pair[0]][0], tree[pair[1]][0])
		}
		require.Equal(t, "partition", values(tree["job main/step load"][0].GetAttributes())["surfin.step.kind"])
		require.Equal(t, "gate checked", tree["job main/step load"][0].GetEvents()[0].GetName())
	})
}
