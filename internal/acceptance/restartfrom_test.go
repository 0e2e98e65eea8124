package acceptance

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// fromStepJob has a split with a right branch that needs a table, a load without a key, a decision, and a
// step that needs another table.
const fromStepJob = `
job: parts
parameters:
  input: {type: path}
flow:
- {step: prepare, tasklet: {sql: insert into done values ('prepare')}}
- split: sides
  branches:
  - [{step: left, tasklet: {sql: insert into done values ('left')}}]
  - [{step: right, tasklet: {sql: insert into beside values ('right')}}]
- step: load
  chunk:
    size: 10
    reader: {csv: {path: "${params.input}", item: {id: int, name: string, amount: float}}}
    writer: {table: {name: target}}
- decide: enough
  choose:
  - {when: steps.load.written > 0, next: gate}
  - next: {fail: {exit: NOTHING}}
- {step: gate, tasklet: {sql: insert into gate values ('gate')}}
- {step: report, tasklet: {sql: insert into done values ('report')}}
`

const fromStepRows = 5000

func acts(t *testing.T, entries []struct{ Step, Action, Certainty string }) (list []string) {
	t.Helper()
	for _, e := range entries {
		if e.Certainty == "certain" && e.Step != "" {
			list = append(list, e.Action+" "+e.Step)
		}
	}
	return list
}

func (s *scene) dryRestart(args ...string) []string {
	s.t.Helper()
	code, out := s.run(append([]string{"restart", "--dry-run", "--sample", "1", "--format", "json", "--log-level", "error"}, args...)...)
	require.Equal(s.t, 0, code, out)
	var plan struct {
		Steps []struct{ Step, Action, Certainty string }
	}
	require.NoError(s.t, json.Unmarshal([]byte(out), &plan), out)
	return acts(s.t, plan.Steps)
}

func (s *scene) explained(id string) []string {
	s.t.Helper()
	code, out := s.run("explain", id, "--format", "json", "--log-level", "error")
	require.Equal(s.t, 0, code, out)
	var e struct {
		Restart struct {
			Entries []struct{ Step, Action, Certainty string }
		}
	}
	require.NoError(s.t, json.Unmarshal([]byte(out), &e), out)
	return acts(s.t, e.Restart.Entries)
}

func (s *scene) refusedFrom(code int, says []string, args ...string) {
	s.t.Helper()
	for _, dry := range [][]string{nil, {"--dry-run"}} {
		got, out := s.run(slices.Concat([]string{"restart"}, args, dry)...)
		require.Equal(s.t, code, got, out)
		for _, want := range says {
			require.Contains(s.t, strings.ReplaceAll(out, s.dir, "DIR"), want, "%v %v", args, dry)
		}
	}
}

func ranIn(t *testing.T, r *repository.Repository, id core.JobExecutionID) (names []string) {
	t.Helper()
	steps, err := r.Steps(context.Background(), id)
	require.NoError(t, err)
	for _, step := range steps {
		names = append(names, step.Name)
	}
	return names
}

func TestARestartFromAStepIsExactThoughItIsKilled(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"parts.yaml": fromStepJob})
		writeInput(t, filepath.Join(s.dir, "in.csv"), fromStepRows)
		db, r := s.open()
		exec := func(statement string) {
			_, err := db.Conn().ExecContext(context.Background(), statement)
			require.NoError(t, err)
		}
		exec("create table done (step varchar(20))")
		exec("create table target (id bigint, name text, amount double precision)")
		code, out := s.run("run", "parts.yaml", "input=in.csv")
		require.Equal(t, 1, code, out)
		s.refusedFrom(2, []string{"left is in a branch of split sides, and right in another branch has not completed", "surfin restart 1 --from sides", "surfin restart 1"}, "1", "--from", "left")
		s.refusedFrom(2, []string{"no attempt that counts has reached load", "a restart can begin at prepare (DIR/parts.yaml:6:3), sides (DIR/parts.yaml:7:3)"}, "1", "--from", "load")
		exec("create table beside (step varchar(20))")
		code, out = s.run("restart", "1")
		require.Equal(t, 1, code, out)
		require.Equal(t, []string{"right", "load", "gate"}, ranIn(t, r, 2))

		s.refusedFrom(2, []string{"no step or element laod (did you mean load?): it has prepare (", "surfin restart 2 --from load"}, "2", "--from", "laod")
		s.refusedFrom(4, []string{"execution 1", "execution 2"}, "1", "--from", "load")
		planned := s.dryRestart("2", "--from", "load")
		require.Equal(t, []string{"pass prepare", "pass left", "pass right", "run load"}, planned)
		s.killInLoad(db, r, "restart", "2", "--from", "load")
		require.Equal(t, []string{"load"}, ranIn(t, r, 3))

		again := []string{"pass prepare", "pass left", "pass right", "resume load"}
		require.Equal(t, again, s.explained("3"))
		require.Equal(t, again, s.dryRestart("3"))
		s.killInLoad(db, r, "restart", "3")
		exec("create table gate (step varchar(20))")
		code, out = s.run("restart", "4")
		require.Equal(t, 0, code, out)
		require.Equal(t, []string{"load", "gate", "report"}, ranIn(t, r, 5))
		require.Equal(t, []int64{2 * fromStepRows, fromStepRows, 2, 2}, s.ints(db, "select (select count(*) from target), (select count(distinct id) from target), (select min(n) from (select count(*) as n from target group by id) as a), (select max(n) from (select count(*) as n from target group by id) as a)", 4), "twice, by a load and a load from there")
		require.Equal(t, []int64{3, 1, 1}, s.ints(db, "select (select count(*) from done), (select count(*) from beside), (select count(*) from gate)", 3), "prepare, left and report once")

		s.refusedFrom(1, []string{"is already complete", "surfin restart 5 --from left --if-complete"}, "5", "--from", "left")
		require.Equal(t, []string{"pass prepare", "run left", "pass right"}, s.dryRestart("5", "--from", "left", "--if-complete")[:3])
		code, out = s.run("restart", "5", "--from", "enough", "--if-complete")
		require.Equal(t, 0, code, out)
		require.Equal(t, []string{"gate", "report"}, ranIn(t, r, 6))
	})
}

// killInLoad kills a command once it has committed rows.
func (s *scene) killInLoad(db tx.Database, r *repository.Repository, args ...string) {
	s.t.Helper()
	rows := s.ints(db, "select count(*) from target", 1)[0]
	p := s.start(args...)
	for s.ints(db, "select count(*) from target", 1)[0] == rows {
		require.False(s.t, p.waitFor(time.Millisecond), p.out.String())
	}
	newest, err := r.Executions(context.Background(), ports.ExecutionFilter{Limit: 1})
	require.NoError(s.t, err)
	id := strconv.FormatInt(int64(newest[0].ID), 10)
	p.signal(syscall.SIGSTOP)
	s.refusedFrom(4, []string{"is already running", "surfin stop " + id}, id, "--from", "prepare")
	p.signal(syscall.SIGKILL)
	code, out := p.wait()
	require.Equal(s.t, -1, code, out)
}
