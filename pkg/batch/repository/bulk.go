package repository

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// bulk implements ports.BulkExplorer.
type bulk struct {
	store *store
	reads *explorer
	// judged caches a long SQL text, keyed by brief: the query that loads executions by ID.
	judged map[bool]string
}

func newBulk(s *store, reads *explorer) *bulk {
	r := &bulk{store: s, reads: reads, judged: map[bool]string{}}
	for brief, records := range reads.records {
		columns := judgedColumns + ", step_count"
		if brief {
			columns = listedColumns
		}
		r.judged[brief] = "SELECT " + records + s.sql(columns+newestColumn+" FROM {job_execution} WHERE id {among}")
	}
	return r
}

// StepsOf implements ports.BulkExplorer with one statement.
func (r *bulk) StepsOf(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID][]core.StepExecution, error) {
	steps := make(map[core.JobExecutionID][]core.StepExecution, len(ids))
	if len(ids) == 0 {
		return steps, nil
	}
	var rows []stepExecution
	if err := gormtx.Find(r.store.session(ctx).Where(r.store.sql("job_execution_id {among}"), listed(ids)).Order("job_execution_id, id"), &rows); err != nil {
		return nil, fmt.Errorf("list the steps of %d job executions: %w", len(ids), err)
	}
	for _, s := range stepRecords(rows) {
		steps[s.JobExecutionID] = append(steps[s.JobExecutionID], s)
	}
	return steps, nil
}

// LastExecutions implements ports.BulkExplorer with one statement, over the index of the
// instances' executions.
func (r *bulk) LastExecutions(ctx context.Context, ids ...core.JobInstanceID) (map[core.JobInstanceID]core.JobExecution, error) {
	last := make(map[core.JobInstanceID]core.JobExecution, len(ids))
	if len(ids) == 0 {
		return last, nil
	}
	found, err := r.reads.executions(r.store.session(ctx).
		Where(r.store.sql("id IN (SELECT MAX(id) FROM {job_execution} WHERE instance_id {among} GROUP BY instance_id)"), listed(ids)), true, len(ids))
	if err != nil {
		return nil, fmt.Errorf("read the last executions of %d instances: %w", len(ids), err)
	}
	for _, e := range found {
		last[e.InstanceID] = e
	}
	return last, nil
}

// The flags of a StepEntry, as selectEntries adds them up.
const (
	entryNoop = 1 << iota
	entryBranch
	entrySkips
	entryWarns
	entryLeased
	entryHasError
)

const selectEntries = `SELECT s.id, s.job_execution_id, COALESCE(s.manager_id, 0), s.name, s.status,
	CASE WHEN s.exit_code = 'NOOP' THEN 1 ELSE 0 END + CASE WHEN s.flow <> '' THEN 2 ELSE 0 END
	+ CASE WHEN s.read_skip_count + s.process_skip_count + s.write_skip_count > 0 THEN 4 ELSE 0 END
	+ CASE WHEN s.context LIKE '%"surfin.warnings"%' THEN 8 ELSE 0 END
	+ CASE WHEN s.lease_until IS NOT NULL THEN 16 ELSE 0 END + CASE WHEN s.error_text <> '' THEN 32 ELSE 0 END
	FROM {step_execution} s WHERE s.job_execution_id IN (SELECT e.id FROM {job_execution} e WHERE e.instance_id = ? AND e.id >= ? AND e.id <= ?)`

// StepEntries implements ports.BulkExplorer with one statement.
func (r *bulk) StepEntries(ctx context.Context, id core.JobInstanceID, since, until core.JobExecutionID) ([]ports.StepEntry, error) {
	var list []ports.StepEntry
	err := r.store.each(ctx, selectEntries, []any{id, since, until}, func(rows *sql.Rows) error {
		var e ports.StepEntry
		var flags int
		err := rows.Scan(&e.ID, &e.Execution, &e.Manager, &e.Name, &e.Status, &flags)
		e.Noop, e.Branch, e.Skips = flags&entryNoop != 0, flags&entryBranch != 0, flags&entrySkips != 0
		e.Warns, e.Leased, e.HasError = flags&entryWarns != 0, flags&entryLeased != 0, flags&entryHasError != 0
		list = append(list, e)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the steps of job instance %d: %w", id, err)
	}
	return list, nil
}

// PartTotals implements ports.BulkExplorer with one statement, and another one if parts resume earlier ones: counters
// before an attempt are a text.
func (r *bulk) PartTotals(ctx context.Context, id core.JobExecutionID) (map[core.StepExecutionID]ports.PartTotal, error) {
	totals, resumed := map[core.StepExecutionID]ports.PartTotal{}, 0
	err := r.store.each(ctx, `SELECT manager_id, SUM(read_count), SUM(filter_count), SUM(write_count), SUM(read_skip_count), SUM(process_skip_count), SUM(write_skip_count),
			SUM(commit_count), SUM(rollback_count), SUM(CASE WHEN before_counts <> '' THEN 1 ELSE 0 END)
		FROM {step_execution} WHERE job_execution_id = ? AND manager_id IS NOT NULL GROUP BY manager_id`, []any{id}, func(rows *sql.Rows) error {
		var manager core.StepExecutionID
		var c core.Counters
		var n int
		err := rows.Scan(&manager, &c.Read, &c.Filter, &c.Write, &c.ReadSkip, &c.ProcessSkip, &c.WriteSkip, &c.Commit, &c.Rollback, &n)
		totals[manager], resumed = ports.PartTotal{Counters: c}, resumed+n
		return err
	})
	if err == nil && resumed > 0 {
		err = r.store.each(ctx, "SELECT manager_id, before_counts FROM {step_execution} WHERE job_execution_id = ? AND manager_id IS NOT NULL AND before_counts <> ''", []any{id}, func(rows *sql.Rows) error {
			var manager core.StepExecutionID
			var text string
			if err := rows.Scan(&manager, &text); err != nil {
				return err
			}
			of := totals[manager]
			of.Before = of.Before.Add(knownCounts(text))
			totals[manager] = of
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("add up the parts of job execution %d: %w", id, err)
	}
	return totals, nil
}

// NewestAttempts implements ports.BulkExplorer with one statement per batchSize ids, over the index
// of the instances' executions.
func (r *bulk) NewestAttempts(ctx context.Context, dead func(core.Owner) bool, ids ...core.JobInstanceID) (map[core.JobInstanceID]ports.NewestAttempt, error) {
	newest := make(map[core.JobInstanceID]ports.NewestAttempt, len(ids))
	for batch := range slices.Chunk(ids, batchSize) {
		rows := make([]newestExecution, 0, len(batch))
		err := r.store.scan(ctx, &rows, `SELECT id, instance_id, job_name, attempt, status, exit_code, definition_path, owner, epoch, lease_until, local_times,
		redrive_of`+judgedColumns+` FROM {job_execution}
			WHERE id IN (SELECT MAX(id) FROM {job_execution} WHERE instance_id {among} GROUP BY instance_id)`, listed(batch))
		if err != nil {
			return nil, fmt.Errorf("read the newest attempts of %d instances: %w", len(ids), err)
		}
		for i := range rows {
			exec, err := rows[i].Row.record()
			if err != nil {
				return nil, err
			}
			newest[exec.InstanceID] = rows[i].attempt(exec, dead)
		}
	}
	return newest, nil
}

// judgedRow is an execution as a launch of its instance would judge it, and the newest execution of
// the instance.
type judgedRow struct {
	Judged newestExecution `gorm:"embedded"`
	Newest string          // as newestColumn writes it
}

// newestColumn is the additional column of a judgedRow: ID and status of the newest execution,
// separated by a space, so that one lookup per row returns both.
const newestColumn = `, (SELECT n.id || ' ' || n.status FROM {job_execution} n WHERE n.instance_id = {job_execution}.instance_id ORDER BY n.id DESC LIMIT 1) AS newest`

func (j *judgedRow) newest() (core.JobExecutionID, core.Status, error) {
	id, status, _ := strings.Cut(j.Newest, " ")
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return 0, "", fmt.Errorf("job execution %d: the newest of its instance: %w", j.Judged.Row.ID, err)
	}
	return core.JobExecutionID(number), core.Status(status), nil
}

// Judged implements ports.BulkExplorer with one statement per batchSize ids. The ids are its only
// parameters, so PostgreSQL plans it once per connection.
func (r *bulk) Judged(ctx context.Context, req ports.JudgedRequest) ([]ports.JudgedExecution, error) {
	judged := make([]ports.JudgedExecution, 0, len(req.IDs))
	for batch := range slices.Chunk(req.IDs, batchSize) {
		err := gormtx.Each(r.store.session(ctx).Raw(r.judged[req.Brief], listed(batch)), func(row *judgedRow) error {
			j, err := row.record(req.Dead)
			judged = append(judged, j)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read %d job executions: %w", len(batch), err)
		}
	}
	slices.SortFunc(judged, func(a, b ports.JudgedExecution) int { return cmp.Compare(b.Execution.ID, a.Execution.ID) })
	return judged, nil
}

func (j *judgedRow) record(dead func(core.Owner) bool) (ports.JudgedExecution, error) {
	exec := j.Judged.Row.with(j.Judged.Params)
	id, status, err := j.newest()
	if err != nil {
		return ports.JudgedExecution{}, err
	}
	newest := ports.NewestAttempt{Execution: core.JobExecution{ID: id, InstanceID: exec.InstanceID, Status: status}}
	if id == exec.ID {
		newest = j.Judged.attempt(exec, dead)
	}
	return ports.JudgedExecution{Execution: exec, Newest: newest, Steps: j.Judged.Row.StepCount}, nil
}

// StepWork implements ports.BulkExplorer with two statements.
func (r *bulk) StepWork(ctx context.Context, ids ...core.JobExecutionID) (ports.StepWork, error) {
	work := ports.StepWork{Groups: map[core.StepExecutionID]ports.StepGroup{}}
	if len(ids) == 0 {
		return work, nil
	}
	var counts []struct {
		Step    core.StepExecutionID
		GroupID int64
		State   string
		Count   int
	}
	err := r.store.scan(ctx, &counts, `SELECT s.id AS step, g.id AS group_id, t.state, count(*) AS count
		FROM {step_execution} s JOIN {task_group} g ON g.step_execution_id = s.id JOIN {task} t ON t.group_id = g.id
		WHERE s.job_execution_id {among} GROUP BY s.id, g.id, t.state`, listed(ids))
	if err != nil {
		return work, fmt.Errorf("count the tasks of steps: %w", err)
	}
	for _, c := range counts {
		group, known := work.Groups[c.Step]
		if !known {
			group = ports.StepGroup{Group: c.GroupID, States: map[string]int{}}
		}
		group.States[c.State] += c.Count
		work.Groups[c.Step] = group
	}
	err = r.store.scan(ctx, &work.Children, `SELECT parent_id AS parent, COALESCE(parent_call, 0) AS call, id AS execution, status
		FROM {job_execution} WHERE parent_id {among} AND active = 1 ORDER BY id`, listed(ids))
	if err != nil {
		return work, fmt.Errorf("read child jobs that are not over: %w", err)
	}
	return work, nil
}

// Redrives implements ports.BulkExplorer.
func (r *bulk) Redrives(ctx context.Context, of core.JobExecutionID, limit int) (found []ports.Redrive, err error) {
	err = r.store.scan(ctx, &found, `SELECT id, redrive_of, status FROM {job_execution} WHERE redrive_of IN
		(SELECT id FROM {job_execution} WHERE instance_id = (SELECT instance_id FROM {job_execution} WHERE id = ?) AND id <= ?) ORDER BY id DESC LIMIT ?`, of, of, limit)
	if err != nil {
		return nil, fmt.Errorf("list the redrives of job execution %d: %w", of, err)
	}
	return found, nil
}

// SkipCounts implements ports.BulkExplorer with one statement, over the index of the
// execution's skipped items.
func (r *bulk) SkipCounts(ctx context.Context, id core.JobExecutionID) ([]ports.SkipCount, error) {
	var rows []struct {
		Step, Class string
		Phase       core.Phase
		Total, Open int64
	}
	err := r.store.scan(ctx, &rows, `SELECT s.name AS step, c.phase, c.error_class AS class, CAST(SUM(c.total) AS bigint) AS total, CAST(SUM(c.open) AS bigint) AS open
		FROM (SELECT k.step_execution_id, k.phase, k.error_class, COUNT(*) AS total, SUM(CASE WHEN k.redriven_by IS NULL THEN 1 ELSE 0 END) AS open
			FROM (SELECT step_execution_id, phase, error_class, redriven_by FROM {skipped_item} i
				WHERE `+ofExecutionAfter("i")+` ORDER BY job_execution_id, id LIMIT ?) AS k
			GROUP BY k.step_execution_id, k.phase, k.error_class) AS c JOIN {step_execution} s ON s.id = c.step_execution_id
		GROUP BY s.name, c.phase, c.error_class ORDER BY 1, 2, 3`, id, 0, id, countedSkips)
	if err != nil {
		return nil, fmt.Errorf("count the skipped items of job execution %d: %w", id, err)
	}
	counts := make([]ports.SkipCount, len(rows))
	var all int64
	for i, row := range rows {
		counts[i] = ports.SkipCount{Step: row.Step, Phase: row.Phase, Class: row.Class, Count: row.Total, Left: row.Open}
		all += row.Total
	}
	for i := range counts {
		counts[i].More = all >= countedSkips
	}
	return counts, nil
}

// countedSkips is the most skipped items of an execution that are counted by class.
const countedSkips = 5_000
