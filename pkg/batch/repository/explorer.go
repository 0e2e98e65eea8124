package repository

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// DefaultPageSize is how many executions Executions lists where the filter does
// not say.
const DefaultPageSize = 50

// paramsBatch is of how many executions one statement reads the parameters: below
// the databases' limits of bind variables.
const paramsBatch = 1000

// Execution implements core.Explorer; core.ErrNotFound for an unknown id.
func (r *Repository) Execution(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error) {
	found, err := r.executions(ctx, r.store.session(ctx).Where("id = ?", id))
	if err != nil {
		return nil, fmt.Errorf("read job execution %d: %w", id, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("job execution %d: %w", id, core.ErrNotFound)
	}
	return &found[0], nil
}

// LastExecution implements core.Explorer; core.ErrNotFound if there is none.
func (r *Repository) LastExecution(ctx context.Context, jobName, key string) (*core.JobExecution, error) {
	found, err := r.executions(ctx, r.ofInstance(ctx, jobName, key).Order("id DESC").Limit(1))
	if err != nil {
		return nil, fmt.Errorf("read the last execution of job %s: %w", jobName, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("execution of job %s with these parameters: %w", jobName, core.ErrNotFound)
	}
	return &found[0], nil
}

// ofInstance selects the executions of an instance.
func (r *Repository) ofInstance(ctx context.Context, jobName, key string) *gorm.DB {
	return r.store.session(ctx).Where(r.store.sql("instance_id = (SELECT id FROM {job_instance} WHERE job_name = ? AND instance_key = ?)"), jobName, key)
}

// Executions implements core.Explorer: newest first, by key, never by offset. It
// takes two statements (one more for every paramsBatch executions on a larger page).
func (r *Repository) Executions(ctx context.Context, filter core.ExecutionFilter) ([]core.JobExecution, error) {
	if filter.Limit <= 0 {
		filter.Limit = DefaultPageSize
	}
	where, args := r.selected(filter)
	timed := !filter.CreatedFrom.IsZero() || !filter.CreatedTo.IsZero()
	query := r.store.session(ctx).Order("id DESC").Limit(filter.Limit)
	if filter.Brief {
		query = r.brief(query)
	}
	switch {
	case len(filter.Statuses) > 1 || timed:
		pages, all := r.pages(where, args, filter)
		query = query.Where("id IN ("+pages+")", all...)
	case len(filter.Statuses) == 1:
		where, args = append(where, "status = ?"), append(args, filter.Statuses[0])
		query = query.Where(strings.Join(where, " AND "), args...)
	case len(where) > 0:
		query = query.Where(strings.Join(where, " AND "), args...)
	}
	found, err := r.executions(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("list job executions: %w", err)
	}
	return found, nil
}

// selected returns the conditions of the filter without the statuses.
func (r *Repository) selected(filter core.ExecutionFilter) (where []string, args []any) {
	and := func(condition string, values ...any) {
		where, args = append(where, r.store.sql(condition)), append(args, values...)
	}
	if filter.JobName != "" {
		and("job_name = ?", filter.JobName)
	}
	if filter.Instance != 0 {
		and("instance_id = ?", filter.Instance)
	}
	if filter.ExitCode != "" {
		and("exit_code = ?", filter.ExitCode)
	}
	if filter.RedriveOf != 0 {
		and("redrive_of = ?", filter.RedriveOf)
	}
	if filter.Task != 0 {
		and("task_id = ?", filter.Task)
	}
	if filter.Parent != 0 {
		and("parent_id = ?", filter.Parent)
	}
	if filter.ParentCall != 0 {
		and("parent_call = ?", filter.ParentCall)
	}
	if filter.Before > 0 {
		and("id < ?", filter.Before)
	}
	if !filter.CreatedFrom.IsZero() {
		and("created_at >= ?", instant{Time: filter.CreatedFrom})
	}
	if !filter.CreatedTo.IsZero() {
		and("created_at < ?", instant{Time: filter.CreatedTo})
	}
	return where, args
}

// pages is the first page of each status, whose ids the page of all of them is
// among. Each is read from the end of an index; an IN of statuses would have to
// choose between sorting the frequent ones and searching for the rare ones. Times
// are not in the order of ids: of those the ids alone are sorted, out of an index.
func (r *Repository) pages(where []string, args []any, filter core.ExecutionFilter) (string, []any) {
	var parts []string
	var all []any
	page := func(where []string, values ...any) {
		all = append(append(all, values...), filter.Limit)
		parts = append(parts, "SELECT id FROM (SELECT id FROM {job_execution} WHERE "+strings.Join(where, " AND ")+" ORDER BY id DESC LIMIT ?) AS page")
	}
	for _, status := range filter.Statuses {
		page(slices.Concat([]string{"status = ?"}, where), slices.Concat([]any{status}, args)...)
	}
	if len(filter.Statuses) == 0 {
		page(where, args...)
	}
	return r.store.sql(strings.Join(parts, " UNION ALL ")), all
}

// brief reads what core.ExecutionFilter says of Brief.
func (r *Repository) brief(query *gorm.DB) *gorm.DB {
	const text = "CASE WHEN definition_path = '' THEN definition_text ELSE '' END AS definition_text"
	columns := slices.DeleteFunc(r.store.columnNames(&jobExecution{}), func(name string) bool {
		return name == "context" || name == "definition_text" || name == "definition_files"
	})
	return query.Select(strings.Join(append(columns, text), ", "))
}

// executions runs the query and adds the parameters of all rows together.
func (r *Repository) executions(ctx context.Context, query *gorm.DB) ([]core.JobExecution, error) {
	var rows []jobExecution
	if err := gormtx.Find(query, &rows); err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, nil
	}
	ids := make([]core.JobExecutionID, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	params, err := r.params(ctx, ids...)
	if err != nil {
		return nil, err
	}
	found := make([]core.JobExecution, len(rows))
	for i := range rows {
		record, err := rows[i].record(params[rows[i].ID])
		if err != nil {
			return nil, err
		}
		found[i] = *record
	}
	return found, nil
}

// withParams is the record of one row with its parameters.
func (r *Repository) withParams(ctx context.Context, row *jobExecution) (*core.JobExecution, error) {
	params, err := r.params(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	return row.record(params[row.ID])
}

func (r *Repository) params(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID]core.Parameters, error) {
	grouped := map[core.JobExecutionID][]jobExecutionParam{}
	for batch := range slices.Chunk(ids, paramsBatch) {
		var rows []jobExecutionParam
		if err := gormtx.Find(r.store.session(ctx).Where("job_execution_id IN ?", batch), &rows); err != nil {
			return nil, err
		}
		for _, row := range rows {
			grouped[row.JobExecutionID] = append(grouped[row.JobExecutionID], row)
		}
	}
	params := make(map[core.JobExecutionID]core.Parameters, len(grouped))
	for id, group := range grouped {
		p, err := parameters(group)
		if err != nil {
			return nil, err
		}
		params[id] = p
	}
	return params, nil
}

// Steps implements core.Explorer. An execution without steps, known or not, has
// none to list.
func (r *Repository) Steps(ctx context.Context, id core.JobExecutionID) ([]core.StepExecution, error) {
	var rows []stepExecution
	if err := gormtx.Find(r.store.session(ctx).Where("job_execution_id = ?", id).Order("id"), &rows); err != nil {
		return nil, fmt.Errorf("list the steps of job execution %d: %w", id, err)
	}
	steps := make([]core.StepExecution, len(rows))
	for i := range rows {
		record, err := rows[i].record()
		if err != nil {
			return nil, err
		}
		steps[i] = *record
	}
	return steps, nil
}

// stepHistory is the newest execution of a step and the number of all.
type stepHistory struct {
	Row      stepExecution `gorm:"embedded"`
	Attempts int
}

// LastSteps implements core.Explorer with one statement, which reads the wide
// columns (position, context) of the newest rows only.
func (r *Repository) LastSteps(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) (map[string]core.StepHistory, error) {
	var rows []stepHistory
	err := r.store.session(ctx).Model(&stepExecution{}).
		Select(r.store.columns(&stepExecution{})+", h.attempts").
		Joins(r.store.sql(`JOIN (SELECT MAX(s.id) AS last_id, COUNT(CASE WHEN s.exit_code <> 'NOOP' THEN 1 END) AS attempts
			FROM {step_execution} s JOIN {job_execution} e ON e.id = s.job_execution_id
			WHERE e.instance_id = ? AND e.id >= ? GROUP BY s.name) h ON h.last_id = {step_execution}.id`), id, since).
		Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read the steps of job instance %d: %w", id, err)
	}
	steps := make(map[string]core.StepHistory, len(rows))
	for i := range rows {
		record, err := rows[i].Row.record()
		if err != nil {
			return nil, err
		}
		steps[record.Name] = core.StepHistory{Last: *record, Attempts: rows[i].Attempts}
	}
	return steps, nil
}
