package repository

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const (
	// stepsAtOnce bounds the steps that one statement adds up, and countedSteps the steps of one call.
	stepsAtOnce  = 10_000
	countedSteps = 100_000
)

// jobHistory implements ports.JobHistory.
type jobHistory struct{ store *store }

// JobNames implements ports.JobHistory with one statement, which reads two index entries for each job.
func (r *jobHistory) JobNames(ctx context.Context, limit int) ([]string, error) {
	var names []string
	err := r.store.scan(ctx, &names, `WITH RECURSIVE jobs(name) AS (
			SELECT MIN(job_name) FROM {job_execution}
			UNION ALL SELECT (SELECT MIN(e.job_name) FROM {job_execution} e WHERE e.job_name > jobs.name) FROM jobs WHERE jobs.name IS NOT NULL)
		SELECT name FROM jobs WHERE name IS NOT NULL LIMIT ?`, limit)
	if err != nil {
		return nil, fmt.Errorf("list the names of jobs: %w", err)
	}
	return names, nil
}

// JobRuns implements ports.JobHistory with one statement: for each job the ends of two indexes, as one
// row with two texts.
func (r *jobHistory) JobRuns(ctx context.Context, newest, completed int, jobs ...string) ([]ports.JobRuns, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	names, err := json.Marshal(jobs)
	if err != nil {
		return nil, err
	}
	var rows []struct{ Name, Newest, Completed string }
	text, args := gormtx.ForEach(r.store.db.Dialect(), `SELECT {key} AS name,
		COALESCE((SELECT string_agg(n.id || ' ' || n.status, ',') FROM (SELECT e.id, e.status FROM {job_execution} e
			WHERE e.job_name = {key} AND e.redrive_of IS NULL ORDER BY e.id DESC LIMIT ?) AS n), '') AS newest,
		COALESCE((SELECT string_agg(CAST(c.id AS text), ',') FROM (SELECT e.id FROM {job_execution} e
			WHERE e.job_name = {key} AND e.status = 'COMPLETED' AND e.redrive_of IS NULL AND e.ended_at IS NOT NULL ORDER BY e.ended_at DESC LIMIT ?) AS c), '') AS completed`,
		"jobs.name", r.store.texts("name")+" AS jobs", jobs, string(names), newest, completed)
	err = r.store.scan(ctx, &rows, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list the newest executions of %d jobs: %w", len(jobs), err)
	}
	found := make([]ports.JobRuns, len(rows))
	for i, row := range rows {
		found[i] = ports.JobRuns{JobName: row.Name, Newest: refs(row.Newest)}
		for _, c := range refs(row.Completed) {
			found[i].Completed = append(found[i].Completed, c.ID)
		}
	}
	return found, nil
}

// refs reads "12 FAILED,11 COMPLETED", newest first.
func refs(text string) []ports.RunRef {
	if text == "" {
		return nil
	}
	list := make([]ports.RunRef, 0, strings.Count(text, ",")+1)
	for word := range strings.SplitSeq(text, ",") {
		id, status, _ := strings.Cut(word, " ")
		n, _ := strconv.ParseInt(id, 10, 64) //nolint:errcheck // the statement wrote it
		list = append(list, ports.RunRef{ID: core.JobExecutionID(n), Status: core.Status(status)})
	}
	slices.SortFunc(list, func(a, b ports.RunRef) int { return int(b.ID - a.ID) })
	return list
}

// Runs implements ports.JobHistory with two statements per batchSize ids, and more for executions with
// many steps.
func (r *jobHistory) Runs(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID]ports.Run, error) {
	runs := make(map[core.JobExecutionID]ports.Run, len(ids))
	steps := map[core.JobExecutionID]int{}
	for batch := range slices.Chunk(ids, batchSize) {
		var rows []struct {
			ID                 core.JobExecutionID
			Status             core.Status
			StartedAt, EndedAt instant
			StepCount          int
		}
		if err := r.store.scan(ctx, &rows, "SELECT id, status, started_at, ended_at, step_count FROM {job_execution} WHERE id {among}", listed(batch)); err != nil {
			return nil, fmt.Errorf("read %d executions: %w", len(batch), err)
		}
		for _, row := range rows {
			runs[row.ID] = ports.Run{RunRef: ports.RunRef{ID: row.ID, Status: row.Status}, StartedAt: row.StartedAt.Time, EndedAt: row.EndedAt.Time}
			steps[row.ID] = row.StepCount
		}
	}
	return runs, r.countRows(ctx, ids, steps, runs)
}

func (r *jobHistory) countRows(ctx context.Context, ids []core.JobExecutionID, steps map[core.JobExecutionID]int, runs map[core.JobExecutionID]ports.Run) error {
	var batch []core.JobExecutionID
	sum, all := 0, 0
	count := func() error {
		err := r.addRows(ctx, batch, runs)
		batch, sum = nil, 0
		return err
	}
	for _, id := range ids {
		n, exists := steps[id]
		if all += n; !exists || all > countedSteps {
			continue
		}
		if sum+n > stepsAtOnce || len(batch) == batchSize {
			if err := count(); err != nil {
				return err
			}
		}
		batch, sum = append(batch, id), sum+n
	}
	return count()
}

// addRows leaves out partitions: their step has their sum.
func (r *jobHistory) addRows(ctx context.Context, ids []core.JobExecutionID, runs map[core.JobExecutionID]ports.Run) error {
	if len(ids) == 0 {
		return nil
	}
	var rows []struct {
		ID    core.JobExecutionID
		N     int64
		Skips int64
	}
	err := r.store.scan(ctx, &rows, `SELECT job_execution_id AS id, CAST(sum(CASE WHEN read_count > 0 THEN read_count ELSE write_count END) AS bigint) AS n,
			CAST(sum(read_skip_count + process_skip_count + write_skip_count) AS bigint) AS skips
		FROM {step_execution} WHERE job_execution_id {among} AND manager_id IS NULL GROUP BY job_execution_id`, listed(ids))
	if err != nil {
		return fmt.Errorf("count the rows of %d executions: %w", len(ids), err)
	}
	for _, id := range ids { // also one without steps
		run := runs[id]
		run.Rows = new(int64)
		runs[id] = run
	}
	for _, row := range rows {
		run := runs[row.ID]
		*run.Rows, run.Skips = row.N, row.Skips
		runs[row.ID] = run
	}
	return nil
}

// searchedSteps bounds the steps with an error that FailedSteps reads of one execution.
const searchedSteps = 100

// FailedSteps implements ports.JobHistory with one statement per batchSize ids, over the index of steps
// with an error.
func (r *jobHistory) FailedSteps(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID]string, error) {
	names := map[core.JobExecutionID]string{}
	for batch := range slices.Chunk(ids, batchSize) {
		var rows []struct {
			ID   core.JobExecutionID
			Name string
		}
		from, bound := "(SELECT s.id, s.name, s.status, s.manager_id FROM {step_execution} s WHERE s.job_execution_id = e.id AND "+saidByAny+" ORDER BY s.id LIMIT ?) AS f WHERE", []any{searchedSteps}
		if r.store.db.Dialect() == tx.MySQL { // a derived table does not see e
			from, bound = "{step_execution} f WHERE f.job_execution_id = e.id AND f.error_text <> '' AND", nil
		}
		err := r.store.scan(ctx, &rows, `SELECT e.id, COALESCE((SELECT f.name FROM `+from+` f.status IN ('FAILED', 'UNKNOWN') AND f.manager_id IS NULL ORDER BY f.id LIMIT 1), '') AS name
			FROM {job_execution} e WHERE e.id {among}`, append(bound, listed(batch))...)
		if err != nil {
			return nil, fmt.Errorf("find the failed steps of %d executions: %w", len(batch), err)
		}
		for _, row := range rows {
			if row.Name != "" {
				names[row.ID] = row.Name
			}
		}
	}
	return names, nil
}
