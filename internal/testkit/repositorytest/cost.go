package repositorytest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func costTests() []test {
	return []test{
		{"a launch takes as many statements after a long history as after a short one", launchCost},
		{"a checkpoint is one statement", checkpointCost},
		{"a plan, an abandonment and a look for lost executions take few statements", operationCost},
		{"a listing takes one statement, and so do the last steps", explorerCost},
		{"no lookup reads a whole table", lookupsUseIndexes},
	}
}

type watched struct {
	tx.Database
	before     func(text string)
	mu         sync.Mutex
	statements []statement
}

type statement struct {
	text string
	args []any
}

func (b *bench) watch() *watched {
	w := &watched{Database: b.db}
	b.repo = b.New(w, nil)
	return w
}

func (w *watched) take() []statement {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.statements
	w.statements = nil
	return list
}

func (w *watched) Conn() tx.Conn { return watchedConn{w.Database.Conn(), w} }

func (w *watched) Begin(ctx context.Context, attr tx.Attr) (tx.Handle, error) {
	h, err := w.Database.Begin(ctx, attr)
	if err != nil {
		return nil, err
	}
	return watchedHandle{h, w}, nil
}

type watchedHandle struct {
	tx.Handle
	w *watched
}

func (h watchedHandle) Conn() tx.Conn { return watchedConn{h.Handle.Conn(), h.w} }

type watchedConn struct {
	tx.Conn
	w *watched
}

func (c watchedConn) saw(text string, args []any) {
	if c.w.before != nil {
		c.w.before(text)
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.statements = append(c.w.statements, statement{text, args})
}

func (c watchedConn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	c.saw(query, args)
	return c.Conn.ExecContext(ctx, query, args...)
}

func (c watchedConn) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	c.saw("PREPARE "+query, nil)
	return c.Conn.PrepareContext(ctx, query)
}

func (c watchedConn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	c.saw(query, args)
	return c.Conn.QueryContext(ctx, query, args...)
}

func (c watchedConn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	c.saw(query, args)
	return c.Conn.QueryRowContext(ctx, query, args...)
}

func launchCost(b *bench) {
	w := b.watch()
	var costs []int
	for range 30 {
		_, ref := b.started("a", 1)
		_, step := b.step(ref, "one", nil)
		b.end(step, ports.StepChange{To: core.StatusFailed})
		b.change(ref, ports.JobChange{To: core.StatusFailed})
		w.take()
		launched, err := b.repo.Launch(b.ctx, b.request("a", 1))
		require.NoError(b, err)
		costs = append(costs, len(w.take()))
		b.change(jobRef(launched.Execution), ports.JobChange{To: core.StatusFailed})
	}
	want := 5
	if b.db.SingleWriter() { // checks before it waits for the writer
		want++
	}
	require.Equal(b, want, costs[0])
	require.Equal(b, want, costs[len(costs)-1])

	_, ref := b.started("a", 1)
	for n := range 20 {
		b.step(ref, fmt.Sprint(n), nil)
	}
	w.take()
	req := b.request("b", 1)
	req.Dead = dead
	_, err := b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	require.Len(b, w.take(), want+2+b.locks(1), "two more for a take-over, however many steps")
	b.change(ports.JobRef{ID: ref.ID + 1, Owner: req.Owner, Epoch: ref.Epoch + 1}, ports.JobChange{To: core.StatusFailed})
	w.take()
	req.FromStart = true
	_, err = b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	require.Len(b, w.take(), want+1, "one more from the start")
}

func operationCost(b *bench) {
	w := b.watch()
	_, ref := b.started("a", 1)
	w.take()
	planned, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "load", Parts: parts(1000)})
	require.NoError(b, err)
	inserts := map[tx.Dialect]int{tx.SQLite: 63, tx.Postgres: 2, tx.MySQL: 2}[w.Dialect()]
	require.Equal(b, 2+inserts, len(w.take()), "the guard, the batches, one audit row")
	require.NoError(b, b.repo.BeginStep(b.ctx, stepRef(planned[0])))
	require.Len(b, w.take(), b.audited(), "the guarded update and its audit row")
	_, err = b.repo.RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
	require.NoError(b, err)
	w.take()
	require.NoError(b, b.repo.Abandon(b.ctx, ref.ID, ports.By{Actor: operator}))
	require.Len(b, w.take(), 7+b.audited()+b.locks(2), "three that lock the newest attempt, two guarded updates, three batches of audit rows, the child jobs")
	_, err = b.repo.Recover(b.ctx, operator, nil)
	require.NoError(b, err)
	require.Len(b, w.take(), 3, "nothing is lost, and no outcome is to be settled")
}

func checkpointCost(b *bench) {
	w := b.watch()
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "one", nil)
	memory := core.NewExecutionContext()
	require.NoError(b, memory.Put("k", 1))
	for _, c := range []ports.Checkpoint{{Position: item.Position(`1`)}, {Position: item.Position(`2`), Context: memory}} {
		w.take()
		require.NoError(b, tx.NewManager(w).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
			return b.repo.Checkpoint(ctx, step, c)
		}))
		seen := w.take()
		require.Len(b, seen, 1)
		require.True(b, strings.HasPrefix(seen[0].text, "UPDATE "), seen[0].text)
	}
	w.take()
	_, err := b.repo.Heartbeat(b.ctx, ref, time.Hour)
	require.NoError(b, err)
	require.Len(b, w.take(), 1)
	b.end(step, ports.StepChange{To: core.StatusCompleted})
	require.Len(b, w.take(), b.audited()+b.locks(1), "the guarded update and its audit row")
}

// audited is the number of statements of a guarded update and its audit row.
func (b *bench) audited() int {
	if b.db.Dialect() == tx.Postgres {
		return 1
	}
	return 2
}

// locks is the number of statements that MySQL has in addition, to lock rows before others.
func (b *bench) locks(n int) int {
	if b.db.Dialect() == tx.MySQL {
		return n
	}
	return 0
}

func explorerCost(b *bench) {
	for day := range int64(5) {
		_, ref := b.started("a", day)
		b.step(ref, "one", nil)
		b.step(ref, "two", nil)
	}
	w := b.watch()
	require.Len(b, b.list(ports.ExecutionFilter{JobName: "load", Statuses: statuses()}), 5)
	require.Len(b, w.take(), 1)
	_, err := b.repo.LastSteps(b.ctx, 1, 0)
	require.NoError(b, err)
	require.Len(b, w.take(), 1)
}

func lookupsUseIndexes(b *bench) {
	w := b.watch()
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "one", nil)
	require.NoError(b, tx.NewManager(w).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		if err := b.repo.Checkpoint(ctx, step, ports.Checkpoint{}); err != nil {
			return err
		}
		require.ErrorIs(b, b.repo.MarkRedriven(ctx, 9, []int64{1}), ports.ErrRedriven)
		return nil
	}))
	b.skipped(ports.SkipFilter{Execution: ref.ID})
	b.skipped(ports.SkipFilter{Execution: ref.ID, Step: "one", Phase: core.PhaseRead, Left: true, After: 7})
	b.skipped(ports.SkipFilter{})
	_, err := b.repo.SkippedItem(b.ctx, 1)
	require.ErrorIs(b, err, core.ErrNotFound)
	_, _, err = b.repo.Reclaim(b.ctx, step)
	require.NoError(b, err)
	b.list(ports.ExecutionFilter{RedriveOf: ref.ID})
	_, err = b.repo.Heartbeat(b.ctx, ref, time.Hour)
	require.NoError(b, err)
	req := b.request("b", 1)
	req.Dead = dead
	_, err = b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	b.list(ports.ExecutionFilter{JobName: "load"})
	b.list(ports.ExecutionFilter{JobName: "load", Before: 9, Statuses: statuses()[:2]})
	b.list(ports.ExecutionFilter{Statuses: statuses()[:2]})
	_, err = b.repo.Judged(b.ctx, ports.JudgedRequest{IDs: []core.JobExecutionID{ref.ID, 9}})
	require.NoError(b, err)
	_, err = b.repo.Steps(b.ctx, ref.ID)
	require.NoError(b, err)
	_, err = b.repo.LastExecution(b.ctx, "load", req.Params.Key())
	require.NoError(b, err)
	_, err = b.repo.LastSteps(b.ctx, 1, 0)
	require.NoError(b, err)
	_, err = b.repo.SampledSteps(b.ctx, ports.SampledRequest{Execution: ref.ID, Limit: 10})
	require.NoError(b, err)
	_, err = b.repo.StoredSeries(b.ctx, 1, 2)
	require.NoError(b, err)

	explain, whole := "EXPLAIN QUERY PLAN ", "SCAN "
	if b.db.Dialect() == tx.Postgres {
		explain, whole = "EXPLAIN ", "Seq Scan"
	}
	for _, s := range w.take() {
		if strings.HasPrefix(s.text, "INSERT") || b.db.Dialect() == tx.MySQL {
			continue
		}
		require.NoError(b, tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
			conn := tx.ConnOf(ctx, b.db)
			if b.db.Dialect() == tx.Postgres {
				if _, err := conn.ExecContext(ctx, "SET LOCAL enable_seqscan = off"); err != nil {
					return err
				}
			}
			rows, err := conn.QueryContext(ctx, explain+s.text, s.args...)
			if err != nil {
				return err
			}
			plan, err := lastColumns(rows)
			require.NotContains(b, strings.NewReplacer("SCAN h", "", "SCAN page", "", "SCAN json_each", "").Replace(plan), whole, "%s\n%s", s.text, plan)
			require.NotContains(b, plan, "FOR ORDER BY", "%s\n%s", s.text, plan)
			return err
		}), s.text)
	}
}

func lastColumns(rows *sql.Rows) (string, error) {
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	var lines []string
	for rows.Next() {
		line := make([]any, len(columns))
		for i := range line {
			line[i] = new(any)
		}
		if err := rows.Scan(line...); err != nil {
			return "", err
		}
		lines = append(lines, fmt.Sprint(*line[len(line)-1].(*any))) //nolint:forcetypeassert // made above
	}
	if err := rows.Err(); err != nil {
		return "", err
	}
	return strings.Join(lines, "\n"), rows.Close()
}
