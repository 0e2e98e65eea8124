package acceptance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const partsJob = `
job: parts
parameters:
  into:  {type: string}
  input: {type: string, default: in}
flow:
- step: create
  tasklet: {sql: "create table %[1]s (id bigint, name text, amount double precision, source text)"}
- step: load
  partition: {by: {files: "in/*.csv"}, workers: 3}
  chunk:
    size: %[2]d
    reader: {csv: {path: "${part.path}", item: {id: int, name: string, amount: float}}}
    processor: {map: {source: part.name}}
    writer: {table: %[1]s}
  expect: read == written
- step: count
  tasklet: {sql: {query: "select count(*) n from %[1]s", out: {n: int}}}
  expect: out.n == steps.load.written
`

const partFiles = 8

// newPartsScene has eight files with different numbers of rows, each with its own ids, and the job that loads
// them.
func newPartsScene(t *testing.T, url string, rows, chunk int) *scene {
	t.Helper()
	files := map[string]string{"parts.yaml": fmt.Sprintf(partsJob, "target", chunk)}
	for i := range partFiles {
		files[partFile(i)] = partText(i, rows)
	}
	return newScene(t, url, files)
}

func partFile(i int) string { return fmt.Sprintf("in/p%d.csv", i) }

func partRows(i, rows int) int { return rows + 7*i }

func partText(i, rows int) string {
	var text strings.Builder
	text.WriteString("id,name,amount\n")
	for row := range partRows(i, rows) {
		fmt.Fprintf(&text, "%d,\"name, %d\",%d.5\n", i*1_000_000+row, row, row)
	}
	return text.String()
}

func (s *scene) assertParts(db tx.Database, table string, rows int, files ...int) {
	s.t.Helper()
	var want []string
	for _, i := range files {
		n := partRows(i, rows)
		want = append(want, fmt.Sprintf("%d %d %d %d p%d.csv", n, n, i*1_000_000, i*1_000_000+n-1, i))
	}
	require.Equal(s.t, want, s.lines(db, "select cast(count(*) as text)||' '||cast(count(distinct id) as text)||' '||cast(min(id) as text)||' '||cast(max(id) as text)||' '||source from "+table+" group by source order by source"))
}

func (s *scene) partitionsRun(r *repository.Repository, id core.JobExecutionID) map[string]core.Status {
	s.t.Helper()
	steps, err := r.Steps(context.Background(), id)
	require.NoError(s.t, err)
	run := map[string]core.Status{}
	for _, step := range steps {
		if name, ok := strings.CutPrefix(step.Name, "load:"); ok {
			run[name] = step.Status
		}
	}
	return run
}

func TestOneOfEightFilesIsPoisonedAndOnlyItRunsAgain(t *testing.T) {
	t.Parallel()
	const rows = 400
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s := newPartsScene(t, url, rows, 1000)
		s.write(partFile(5), strings.Replace(partText(5, rows), "5000217,", "5oooo217,", 1))
		code, out := s.run("run", "parts.yaml", "into=target")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, "p5.csv")
		require.Contains(t, out, "surfin restart 1")

		db, r := s.open()
		s.assertParts(db, "target", rows, 0, 1, 2, 3, 4, 6, 7)
		want := map[string]core.Status{}
		for i := range partFiles {
			want[fmt.Sprintf("p%d.csv", i)] = core.StatusCompleted
		}
		want["p5.csv"] = core.StatusFailed
		require.Equal(t, want, s.partitionsRun(r, 1))
		for _, command := range [][]string{{"show", "1"}, {"explain", "1"}} {
			said := s.said(command...)
			require.Contains(t, said, "p5.csv", command)
			require.Contains(t, said, "5oooo217", command)
			require.NotContains(t, said, "p4.csv", command)
		}
		require.Contains(t, s.said("show", "1"), "load: 8 partitions: 7 COMPLETED, 1 FAILED")
		require.Contains(t, s.said("explain", "1"), "7 of 8 partitions complete")

		s.write(partFile(5), partText(5, rows))
		code, out = s.run("restart", "1")
		require.Zero(t, code, out)
		require.Equal(t, map[string]core.Status{"p5.csv": core.StatusCompleted}, s.partitionsRun(r, 2))
		s.assertParts(db, "target", rows, 0, 1, 2, 3, 4, 5, 6, 7)
	})
}

func TestAPartitionThatFailsInItsMiddleGoesOnBehindItsLastCommit(t *testing.T) {
	t.Parallel()
	const rows = 400
	inTurn(t, 1, func(t *testing.T, url string) {
		t.Parallel()
		s := newPartsScene(t, url, rows, 50)
		s.write("parts.yaml", strings.Replace(s.read("parts.yaml"), "(id bigint,", "(id bigint unique,", 1))
		s.write("parts.yaml", strings.Replace(s.read("parts.yaml"), "source text)", "source text); insert into target (id) values (5000217)", 1))
		code, out := s.run("run", "parts.yaml", "into=target")
		require.Equal(t, 1, code, out)
		require.Contains(t, s.said("explain", "1"), "p5.csv")
		db, r := s.open()
		require.Equal(t, []int64{200}, s.ints(db, "select count(*) from target where source = 'p5.csv'", 1), "four chunks were committed")

		s.said("sql", "--write", "delete from target where source is null")
		code, out = s.run("restart", "1")
		require.Zero(t, code, out)
		steps, err := r.Steps(context.Background(), 2)
		require.NoError(t, err)
		require.Equal(t, "load:p5.csv", steps[1].Name)
		require.Equal(t, int64(partRows(5, rows)-200), steps[1].Counters.Read)
		require.Equal(t, map[string]core.Status{"p5.csv": core.StatusCompleted}, s.partitionsRun(r, 2))
		s.assertParts(db, "target", rows, 0, 1, 2, 3, 4, 5, 6, 7)
	})
}

func TestAPartitionGoesOnInAFileThatWasCorrectedBehindItsLastCommit(t *testing.T) {
	t.Parallel()
	const rows = 400
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s := newPartsScene(t, url, rows, 50)
		s.write(partFile(5), strings.Replace(partText(5, rows), "5000217,", "5oooo217,", 1))
		code, out := s.run("run", "parts.yaml", "into=target")
		require.Equal(t, 1, code, out)
		s.write(partFile(5), partText(5, rows))
		code, out = s.run("restart", "1")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, "--accept-changes")
		code, out = s.run("restart", "2", "--accept-changes")
		require.Zero(t, code, out)
		db, r := s.open()
		require.Equal(t, map[string]core.Status{"p5.csv": core.StatusFailed}, s.partitionsRun(r, 2))
		require.Equal(t, map[string]core.Status{"p5.csv": core.StatusCompleted}, s.partitionsRun(r, 3))
		s.assertParts(db, "target", rows, 0, 1, 2, 3, 4, 5, 6, 7)
	})
}

func TestEveryRowOfEveryPartitionIsThereOnceThoughTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	const rows = 2000
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		kills, random := killsOf(t, 5, 1, 4)
		s := newPartsScene(t, url, rows, 10)
		db, r := s.open()
		for load := 0; kills > 0; load++ {
			table := fmt.Sprint("target", load)
			s.write(table+".yaml", fmt.Sprintf(partsJob, table, 10))
			kills = s.loadWithKills(table, kills, random)
			s.assertParts(db, table, rows, 0, 1, 2, 3, 4, 5, 6, 7)
			s.assertPartitionsOnce(r, table, rows)
		}
	})
}

func (s *scene) assertPartitionsOnce(r *repository.Repository, table string, rows int) {
	s.t.Helper()
	executions, err := r.Executions(context.Background(), ports.ExecutionFilter{Limit: 1000})
	require.NoError(s.t, err)
	completed := map[string]core.JobExecutionID{}
	total, last := map[string]core.Counters{}, core.Counters{}
	for _, e := range slices.Backward(executions) {
		if p, _ := e.Params.Get("into"); p.Value != table {
			continue
		}
		s.assertNoneAgain(r, e.ID, completed)
		steps, err := r.Steps(context.Background(), e.ID)
		require.NoError(s.t, err)
		for _, step := range steps {
			total[step.Name] = total[step.Name].Add(step.Counters)
			if step.Name == "load" {
				last = step.Total()
			}
		}
	}
	all := int64(0)
	for i := range partFiles {
		c, n := total[fmt.Sprintf("load:p%d.csv", i)], int64(partRows(i, rows))
		all += n
		require.Equal(s.t, core.Counters{Read: n, Write: n, Commit: (n + 9) / 10}, c, "partition %d", i)
	}
	require.Equal(s.t, []int64{all, all}, []int64{last.Read, last.Write}, "the step as a whole")
	require.Len(s.t, completed, partFiles+3)
}
