package operator

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const redriveJob = `job: load
flow:
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, note: string, sum: int}}}
    processor: {filter: "item.note != 'none'"}
    writer: {table: t}
    skip: 100
`

func TestAPlanOfARedriveSaysWhatBecomesOfEachItemAndTheRedriveRunsTheChosenOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		s.e.Exec("CREATE TABLE t (id bigint PRIMARY KEY, note text, sum bigint)")
		s.write("in.csv", "id,note,sum\n1,a,1O\n2,b,2O\n3,c,3O\n4,d,4O\n5,e,5\n6,ü,6,6\n")
		s.write("load.yaml", redriveJob)
		path := filepath.Join(s.dir, "load.yaml")
		exec, err := s.s.Run(ctx, RunRequest{File: path})
		require.NoError(t, err)
		page, err := s.s.Skips(ctx, SkipsRequest{Execution: exec.ID})
		require.NoError(t, err)
		ids := make([]int64, len(page.Items))
		for i, v := range page.Items {
			ids[i] = v.ID
		}
		require.Len(t, ids, 5)
		from, four := 4, 6
		require.Equal(t, Fault{Field: "sum", Column: 3, From: &from, To: &four}, page.Items[0].Fault)
		seven := 7
		require.Equal(t, Fault{Column: 4, From: &four, To: &seven}, page.Items[4].Fault)

		text := func(s string) Edit { return Edit{Raw: &s} }
		edited := map[int64]Edit{ids[0]: text("1,a,10"), ids[1]: text("2,none,20"), ids[2]: text("3,c,3x"), ids[3]: {}, ids[4] + 9: text("x")}
		plan := func(req RedrivePlanRequest) *RedrivePlan {
			t.Helper()
			req.Execution, req.File = exec.ID, path
			p, err := s.s.PlanRedrive(ctx, req)
			require.NoError(t, err)
			return p
		}
		p := plan(RedrivePlanRequest{RedriveRequest: RedriveRequest{Edited: edited}})
		require.Equal(t, "load", p.Step)
		require.Equal(t, []DryEnd{{Component: "table", Target: "t", Database: "default"}}, []DryEnd{{p.Writers[0].Component, p.Writers[0].Target, p.Writers[0].Database, nil, false}})
		require.Equal(t, []int{1, 1, 2, 0, 0, 1}, []int{p.Written, p.Filtered, p.Skipped, p.Failed, p.Unknown, p.Refused})
		var outcomes []string
		for _, i := range p.Items {
			outcomes = append(outcomes, fmt.Sprintf("%s %s %s/%d", i.Outcome, i.Item, i.Field, i.Column))
		}
		require.Equal(t, []string{`written {"id":1,"note":"a","sum":10} /0`, "filtered  /0", "skipped  sum/3", "skipped  sum/3", "refused  /0"}, outcomes)
		require.Equal(t, PlannedItem{ID: ids[2], Outcome: "skipped", Phase: core.PhaseRead, Class: "parse", Error: p.Items[2].Error, Fault: page.Items[0].Fault}, p.Items[2])
		require.Equal(t, "not found", p.Items[4].Error)
		require.Equal(t, []int64{5}, s.e.Ints("SELECT id FROM t"))

		all := plan(RedrivePlanRequest{Limit: 3})
		require.Equal(t, ids[2], all.Next)
		require.Len(t, plan(RedrivePlanRequest{After: all.Next}).Items, 2)

		redrive := func(edited map[int64]Edit) error {
			running, err := s.s.Redrive(ctx, RedriveRequest{Execution: exec.ID, File: path, Edited: edited})
			if err != nil {
				return err
			}
			done, err := running.Follow(ctx, nil)
			require.NoError(t, err)
			require.Equal(t, core.StatusCompleted, done.Status)
			return nil
		}
		err = redrive(map[int64]Edit{ids[0]: edited[ids[0]], ids[2]: edited[ids[2]]})
		require.NoError(t, err)
		require.Equal(t, []int64{1, 5}, s.e.Ints("SELECT id FROM t ORDER BY id"))
		left, err := s.s.Skips(ctx, SkipsRequest{Execution: exec.ID, Left: true})
		require.NoError(t, err)
		require.Len(t, left.Items, 4)
		err = redrive(map[int64]Edit{ids[0]: edited[ids[0]], ids[1]: text("2,b,20")})
		var refused *Refusal
		require.ErrorAs(t, err, &refused)
		require.Equal(t, refusal.Items, refused.Reason)
		require.ErrorContains(t, err, fmt.Sprintf("skipped item %d: execution %d has redriven it", ids[0], exec.ID+1))
		p = plan(RedrivePlanRequest{RedriveRequest: RedriveRequest{Edited: map[int64]Edit{ids[0]: edited[ids[0]]}}})
		require.Equal(t, []PlannedItem{{ID: ids[0], Outcome: OutcomeRefused, Error: fmt.Sprintf("execution %d has redriven it", exec.ID+1)}}, p.Items)
		require.Equal(t, []int64{1, 5}, s.e.Ints("SELECT id FROM t ORDER BY id"))
		_, err = s.s.PlanRedrive(ctx, RedrivePlanRequest{RedriveRequest: RedriveRequest{Execution: exec.ID, File: path}, Limit: 9999})
		require.ErrorAs(t, err, new(*RequestError))
	})
}

func TestSkippedItemsAreFoundByClassAndText(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		s.e.Exec("CREATE TABLE t (id bigint PRIMARY KEY, note text, sum bigint)")
		s.write("in.csv", "id,note,sum\n1,a,1O\n2,\"B\"\"q\",2O\n3,c,3O,\n")
		s.write("load.yaml", redriveJob)
		exec, err := s.s.Run(ctx, RunRequest{File: filepath.Join(s.dir, "load.yaml")})
		require.NoError(t, err)
		for text, want := range map[string]int{"": 3, "1o": 1, `b""Q`: 1, "fields": 1, "%": 0} {
			page, err := s.s.Skips(ctx, SkipsRequest{Execution: exec.ID, Class: "parse", Text: text})
			require.NoError(t, err)
			require.Len(t, page.Items, want, text)
			require.Zero(t, page.Next)
		}
		page, err := s.s.Skips(ctx, SkipsRequest{Execution: exec.ID, Class: "other"})
		require.NoError(t, err)
		require.Empty(t, page.Items)
		filter, err := SkipsRequest{Execution: exec.ID, Class: "other"}.filter()
		require.NoError(t, err)
		filter.Window = 2
		found, err := s.e.Repository.SkippedItems(ctx, filter)
		require.NoError(t, err)
		require.Empty(t, found)
		end, err := s.e.Repository.WindowEnd(ctx, filter)
		require.NoError(t, err)
		filter.After, filter.Class = end, ""
		found, err = s.e.Repository.SkippedItems(ctx, filter)
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.True(t, slices.ContainsFunc(found, func(i core.SkippedItem) bool { return json.Valid(i.Item) || i.Raw != nil }))
	})
}
