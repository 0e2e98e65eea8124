package operator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const loopJob = `job: tour
parameters:
  year: {type: int}
flow:
- {step: make, tasklet: {sql: "create table if not exists visit (n int)"}}
- {step: add, tasklet: {sql: insert into visit values (1)}}
- {step: count, tasklet: {sql: {query: select count(*) n from visit, out: {n: int}}}}
- decide: way
  choose:
  - {when: steps.count.out.n < 3, next: add}
  - next: both
- split: both
  branches:
  - - {step: short, tasklet: {sql: select 1}}
  - - {step: slow, tasklet: {sql: "with recursive n(i) as (select 1 union all select i + 1 from n where i < 400000) select count(*) from n"}}
    - {step: slower, tasklet: {sql: "with recursive n(i) as (select 1 union all select i + 1 from n where i < 400000) select count(*) from n"}}
- step: copy
  chunk:
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer: {csv: out.csv}
finally:
- {step: tell, tasklet: {sql: select 1}}
`

func TestTheTimeLineHasAllAttemptsRoundsAndBranches(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		s.write("tour.yaml", loopJob)
		s.write("in.csv", "id\nbad\n")
		first := s.run("tour.yaml", map[string]string{"year": "1995"})
		require.Equal(t, core.StatusFailed, first.Status, first.Error)
		line, err := s.s.Timeline(ctx, TimelineRequest{Execution: first.ID})
		require.NoError(t, err)
		var chain []string
		for _, c := range line.Critical.Steps {
			chain = append(chain, fmt.Sprintf("%s %d", c.Step, c.Round))
		}
		branch := []string{"slow 0", "slower 0"}
		if line.named("short").Ended.After(line.named("slower").Ended) { // SQLite has one writer, and no order of those that wait for it
			branch = []string{"short 0"}
		}
		want := slices.Concat([]string{"make 0", "add 1", "count 1", "add 2", "count 2", "add 3", "count 3"}, branch, []string{"copy 0", "tell 0"})
		require.Equal(t, want, chain)
		require.Positive(t, line.Critical.Duration)
		require.LessOrEqual(t, line.Critical.Duration, line.Critical.Total, "the rest is between the steps")

		s.write("in.csv", "id\n1\n")
		second := s.run("tour.yaml", map[string]string{"year": "1995"})
		require.Equal(t, core.StatusCompleted, second.Status, second.Error)
		line, err = s.s.Timeline(ctx, TimelineRequest{Execution: second.ID})
		require.NoError(t, err)
		for i := range line.Spans {
			span := &line.Spans[i]
			require.False(t, span.Started.IsZero() || span.Ended.Before(span.Started), span.Name)
			require.False(t, span.Started.Before(line.From) || span.Ended.After(line.To), span.Name)
		}
		at := func(name string) int {
			return slices.IndexFunc(line.Spans, func(s Span) bool { return s.Name == name })
		}
		if short, slow := at("short"), at("slow"); short > slow { // whichever began first
			span := line.Spans[short]
			line.Spans = slices.Insert(slices.Delete(line.Spans, short, short+1), slow, span)
		}
		for i := range line.Spans {
			line.Spans[i].Step = 0 // the branches race for numbers
		}
		for i := range line.Critical.Steps {
			line.Critical.Steps[i].ID = 0
		}
		s.matches("timeline", line)
		of, err := s.s.Timeline(ctx, TimelineRequest{Execution: first.ID})
		require.NoError(t, err)
		require.Equal(t, second.ID, of.Critical.Execution, "of the newest attempt, whichever is asked for")
		require.Len(t, of.Spans, len(line.Spans))
		_, err = s.s.Timeline(ctx, TimelineRequest{Execution: 99})
		require.ErrorIs(t, err, core.ErrNotFound)
	})
}

func (t *Timeline) named(name string) *Span {
	return &t.Spans[slices.IndexFunc(t.Spans, func(s Span) bool { return s.Name == name })]
}

const partsJob = `job: parts
flow:
- step: load
  partition: {by: {files: "in/*.csv"}, workers: 3}
  chunk:
    reader: {csv: {path: "${part.path}", item: {id: int}}}
    writer: {csv: "out/${part.name}.csv"}
`

func TestPartsAreListedInPagesAndOrders(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		s.write("parts.yaml", partsJob)
		s.write("out/keep", "")
		for i := range 7 {
			s.write(fmt.Sprintf("in/p%d.csv", i), numberedLines(2+i))
		}
		s.write("in/p2.csv", "id\nbad\n")
		exec := s.run("parts.yaml", nil)
		require.Equal(t, core.StatusFailed, exec.Status)
		s.e.Exec("UPDATE surfin_step_execution SET status = 'COMPLETED', exit_code = 'COMPLETED' WHERE status = 'STOPPED' OR status = 'STARTING'")
		for i := range 7 { // p0 took 7 s
			s.e.Exec(fmt.Sprintf("UPDATE surfin_step_execution SET ended_at = started_at + %s WHERE name = 'load:p%d.csv'", span(s, 7-i), i))
		}
		pages := func(req PartsRequest) (names []string, last *PartPage) {
			req.Execution, req.Limit = exec.ID, 3
			for {
				page, err := s.s.Parts(ctx, req)
				require.NoError(t, err)
				require.LessOrEqual(t, len(page.Parts), 3)
				for _, p := range page.Parts {
					names = append(names, strings.TrimSuffix(strings.TrimPrefix(p.Step, "load:"), ".csv"))
				}
				if page.Next == "" {
					return names, page
				}
				req.After = page.Next
			}
		}
		names, page := pages(PartsRequest{})
		require.Equal(t, []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6"}, names)
		require.Equal(t, PartedStep{Step: "load", ID: 1, Status: core.StatusFailed, Started: page.Started}, page.PartedStep)
		require.Equal(t, 7, page.Total)
		require.Equal(t, map[core.Status]int{core.StatusCompleted: 6, core.StatusFailed: 1}, page.Statuses)
		require.NotNil(t, page.Parts[0].Process, "also when it is over")
		names, _ = pages(PartsRequest{Order: "duration", Step: "load"})
		require.Equal(t, []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6"}, names)
		s.e.Exec("UPDATE surfin_step_execution SET ended_at = started_at + " + span(s, 60) + " WHERE name = 'load:p5.csv'")
		names, _ = pages(PartsRequest{Order: "duration", Step: "1"})
		require.Equal(t, []string{"p5", "p0", "p1", "p2", "p3", "p4", "p6"}, names)
		names, _ = pages(PartsRequest{Order: "status"})
		require.Equal(t, "p2", names[0])
		require.Len(t, names, 7)
		for _, order := range []string{"number", "duration", "status"} {
			names, _ = pages(PartsRequest{Order: ports.PartOrder(order), Left: true})
			require.Equal(t, []string{"p2"}, names, order)
		}

		var wrong *RequestError
		for _, req := range []PartsRequest{{Step: "lod"}, {Order: "size"}, {After: "x"}, {After: "3", Order: "status"}, {After: "1-2"}, {Limit: -1}} {
			req.Execution = exec.ID
			_, err := s.s.Parts(ctx, req)
			require.ErrorAs(t, err, &wrong, "%+v", req)
		}
		_, err := s.s.Parts(ctx, PartsRequest{Execution: 99})
		require.ErrorIs(t, err, core.ErrNotFound)
	})
}

// span is a number of seconds in the database's unit.
func span(s *scene, seconds int) string {
	if strings.HasPrefix(gormtx.Now(s.e.Database.Dialect()), "clock") {
		return fmt.Sprintf("interval '%d seconds'", seconds)
	}
	return fmt.Sprint(seconds * int(time.Second/time.Microsecond))
}

// Ten thousand parts on two workers; one worker lost a hundred of them.
func TestManyPartsAreLanesByWorker(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		const parts = 10_000
		s, ctx := newScene(t, url), t.Context()
		s.write("one.yaml", "job: one\nflow: [{step: s, tasklet: {sql: select 1}}]\n")
		exec := s.run("one.yaml", nil)
		addParts(s.e, 1, parts)
		second := span(s, 1)
		s.e.Exec("UPDATE surfin_job_execution SET step_count = 10001")
		s.e.Exec("UPDATE surfin_step_execution SET started_at = started_at + id * " + second + ", ended_at = started_at + (id + 2) * " + second + `, status = 'COMPLETED', assigned_count = 1, read_count = 10, write_count = 9,
			owner = CASE WHEN id % 2 = 0 THEN 'a/b/1/s/n' ELSE 'a/b/2/s/n' END WHERE manager_id IS NOT NULL`)
		s.e.Exec("UPDATE surfin_step_execution SET status = 'FAILED' WHERE name IN ('s:7', 's:9')")
		s.e.Exec("UPDATE surfin_step_execution SET ended_at = ended_at + " + span(s, 500) + " WHERE name = 's:500'")
		s.e.Exec("INSERT INTO surfin_worker (name, capacity, types, owner, started_at, heartbeat_at, lease_until) SELECT 'east', 1, '[]', 'a/b/1/s/n', started_at, started_at, started_at FROM surfin_step_execution WHERE id = 1")
		audit := "INSERT INTO surfin_audit (at, act, actor, job_execution_id, step_execution_id, from_status, to_status, epoch) SELECT "
		s.e.Exec(audit + "started_at - " + span(s, 3) + ", 'assign', '', job_execution_id, id, 'STARTING', 'STARTED', 1 FROM surfin_step_execution WHERE manager_id IS NOT NULL AND id <= 101")
		s.e.Exec(audit + "started_at, 'assign', CASE WHEN id <= 101 THEN 'a/b/1/s/n' ELSE '' END, job_execution_id, id, 'STARTING', 'STARTED', 1 FROM surfin_step_execution WHERE manager_id IS NOT NULL")
		s.e.Exec(audit + "ended_at, 'end step', owner, job_execution_id, id, 'STARTED', 'COMPLETED', 1 FROM surfin_step_execution WHERE manager_id IS NOT NULL")

		began := time.Now()
		line, err := s.s.Timeline(ctx, TimelineRequest{Execution: exec.ID})
		require.NoError(t, err)
		t.Logf("the time line of %d parts took %v", parts, time.Since(began))
		require.Len(t, line.Lanes, 2)
		for i, l := range line.Lanes {
			require.Equal(t, []int{parts / 2, 10 * parts / 2}, []int{l.Count, int(l.Read)}, "lane %d", i)
			require.Equal(t, []string{"east", ""}[i], []string{line.Lanes[0].Worker, line.Lanes[1].Worker}[i])
		}
		require.Equal(t, 100, line.Lanes[0].Lost)
		require.InDelta(t, 2*parts/2+100*3, line.Lanes[0].Busy, 1)
		require.InDelta(t, 2*parts/2+500, line.Lanes[1].Busy, 1)
		require.Equal(t, map[string]int{"COMPLETED": parts/2 - 2, "FAILED": 2}, line.Lanes[0].Statuses)
		var longest, failed []string
		for _, p := range line.Spans {
			if p.Longest {
				longest = append(longest, p.Name)
			}
			if p.Status == "FAILED" {
				failed = append(failed, p.Name)
			}
		}
		require.Len(t, longest, 5)
		require.Contains(t, longest, "s:500")
		require.Equal(t, []string{"s:7", "s:9"}, failed)
		require.Equal(t, "s:500", line.Critical.Steps[0].Part.Name)

		s.e.Exec("UPDATE surfin_step_execution SET status = 'STARTED', ended_at = NULL, lease_until = (SELECT one.started_at FROM surfin_step_execution one WHERE one.id = 1) WHERE name = 's:11'")
		line, err = s.s.Timeline(ctx, TimelineRequest{Execution: exec.ID})
		require.NoError(t, err)
		require.Equal(t, []int{101, parts / 2, 1}, []int{line.Lanes[0].Lost, line.Lanes[0].Count, line.Lanes[0].Statuses["STARTED"]})
		s.e.Exec("UPDATE surfin_step_execution SET status = 'COMPLETED', ended_at = started_at + " + second + " WHERE name = 's:11'")

		for _, order := range []ports.PartOrder{ports.PartsByNumber, ports.PartsByDuration, ports.PartsByStatus} {
			began = time.Now()
			page, err := s.s.Parts(ctx, PartsRequest{Execution: exec.ID, Order: order})
			require.NoError(t, err)
			t.Logf("a page of parts by %s took %v", order, time.Since(began))
			require.Equal(t, map[ports.PartOrder]string{ports.PartsByNumber: "s:1", ports.PartsByDuration: "s:500", ports.PartsByStatus: "s:7"}[order], page.Parts[0].Step)
		}
		began = time.Now()
		_, err = s.s.Show(ctx, ShowRequest{Execution: exec.ID})
		require.NoError(t, err)
		t.Logf("showing them took %v", time.Since(began))
	})
}
