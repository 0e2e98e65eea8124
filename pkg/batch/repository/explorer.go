package repository

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// defaultPageSize is the number of executions that Executions lists unless the filter sets a limit.
const defaultPageSize = 50

// explorer implements ports.Explorer.
type explorer struct {
	store *store
	// records caches a long SQL text, keyed by brief: the SELECT list of an execution.
	records map[bool]string
}

func newExplorer(s *store) *explorer {
	r := &explorer{store: s}
	r.records = map[bool]string{true: r.selectList(true), false: r.selectList(false)}
	return r
}

// selectList returns the columns of a record; brief leaves out those that
// core.ExecutionFilter.Brief does.
func (r *explorer) selectList(brief bool) string {
	unread := []string{"status_before", "active", "step_count", "last_epoch"}
	unlisted := []string{"last_move", "context", "definition_text", "definition_files", "definition_hash", "job_time", "exclusive_key", "task_id", "parent_call"}
	columns := slices.DeleteFunc(r.store.columnNames(&jobExecution{}), func(name string) bool {
		return slices.Contains(unread, name) || brief && slices.Contains(unlisted, name)
	})
	if brief {
		columns = append(columns, "CASE WHEN definition_path = '' THEN definition_text ELSE '' END AS definition_text")
	}
	return strings.Join(columns, ", ") + r.store.sql(", "+paramsColumn)
}

// Execution implements ports.Explorer; it returns core.ErrNotFound for an unknown ID.
func (r *explorer) Execution(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error) {
	found, err := r.executions(r.store.session(ctx).Where("id = ?", id), false, 1)
	if err != nil {
		return nil, fmt.Errorf("read job execution %d: %w", id, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("job execution %d: %w", id, core.ErrNotFound)
	}
	return &found[0], nil
}

// LastExecution implements ports.Explorer; it returns core.ErrNotFound if there is none.
func (r *explorer) LastExecution(ctx context.Context, jobName, key string) (*core.JobExecution, error) {
	found, err := r.executions(r.ofInstance(ctx, jobName, key).Order("id DESC").Limit(1), false, 1)
	if err != nil {
		return nil, fmt.Errorf("read the last execution of job %s: %w", jobName, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("execution of job %s with these parameters: %w", jobName, core.ErrNotFound)
	}
	return &found[0], nil
}

func (r *explorer) ofInstance(ctx context.Context, jobName, key string) *gorm.DB {
	return r.store.session(ctx).Where(r.store.sql("instance_id = (SELECT id FROM {job_instance} WHERE job_name = ? AND instance_key = ?)"), jobName, key)
}

// Executions implements ports.Explorer: newest first, by key, never by offset, with one statement.
func (r *explorer) Executions(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecution, error) {
	timed := !filter.CreatedFrom.IsZero() || !filter.CreatedTo.IsZero()
	query, limit := r.page(ctx, r.records[filter.Brief], filter, timed)
	found, err := r.scanned(query, filter.Brief, limit)
	if err != nil {
		return nil, fmt.Errorf("list job executions: %w", err)
	}
	return found, nil
}

// before returns the execution of the instance before this one, or nil.
func (r *explorer) before(ctx context.Context, e *core.JobExecution) (*core.JobExecution, error) {
	list, err := r.Executions(ctx, ports.ExecutionFilter{Instance: e.InstanceID, Before: e.ID, Limit: 1})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// ExecutionIDs implements ports.Explorer with one statement, or with two if the filter has only
// CreatedFrom and the newest page has older executions too.
func (r *explorer) ExecutionIDs(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecutionID, error) {
	ids, known, err := r.newestSince(ctx, filter)
	if err != nil || known {
		return ids, err
	}
	query, limit := r.page(ctx, "id", filter, false)
	rows := make([]struct{ ID core.JobExecutionID }, 0, min(limit, batchSize))
	if err := gormtx.Scan(query, &rows); err != nil {
		return nil, fmt.Errorf("list job executions: %w", err)
	}
	ids = make([]core.JobExecutionID, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	return ids, nil
}

// onlySince reports whether the filter selects executions by a time of creation that is open-ended.
func onlySince(filter ports.ExecutionFilter) bool {
	return !filter.CreatedFrom.IsZero() && filter.CreatedTo.IsZero()
}

type createdAt struct {
	ID        core.JobExecutionID
	CreatedAt instant
}

// newestSince returns the newest page regardless of time, and known = true if all of it was created
// since the filter's time: then it is the page of the filter. IDs mostly follow the order of
// creation, but the database does not know that: it would read all executions since that time, and
// sort them by ID.
func (r *explorer) newestSince(ctx context.Context, filter ports.ExecutionFilter) (ids []core.JobExecutionID, known bool, err error) {
	from := filter.CreatedFrom
	if !onlySince(filter) {
		return nil, false, nil
	}
	filter.CreatedFrom = time.Time{}
	query, limit := r.page(ctx, "id, created_at", filter, false)
	rows := make([]createdAt, 0, min(limit, batchSize))
	if err := gormtx.Scan(query, &rows); err != nil {
		return nil, false, fmt.Errorf("list job executions: %w", err)
	}
	for _, row := range rows {
		if !row.CreatedAt.Before(from) {
			ids = append(ids, row.ID)
		}
	}
	return ids, len(ids) == len(rows), nil
}

// page returns the query of a page with these columns, and its size. With apart, the page's IDs are selected in a
// subquery, as they always are for several statuses. It is a text: gorm would take a tenth of a list's time to make it.
func (r *explorer) page(ctx context.Context, columns string, filter ports.ExecutionFilter, apart bool) (query *gorm.DB, limit int) {
	if filter.Limit <= 0 {
		filter.Limit = defaultPageSize
	}
	where, order := selected(filter), newestFirst(filter)
	switch {
	case len(filter.Statuses) > 1 || apart:
		pages, all := r.pages(where, filter)
		where, order = &conditions{texts: []string{"id IN (" + pages + ")"}, args: all}, "id DESC"
	case len(filter.Statuses) == 1:
		where.add(true, "status = ?", filter.Statuses[0])
	}
	text := "SELECT " + columns + " FROM " + r.store.sql("{job_execution}")
	if len(where.texts) > 0 {
		text += " WHERE " + where.text()
	}
	return r.store.session(ctx).Raw(text+" ORDER BY "+order+" LIMIT ?", append(where.args, filter.Limit)...), filter.Limit
}

// newestFirst is the order of a page with one status or none. For executions since a time, it keeps
// the database from using the index by ID: such a page is mostly short (newestSince handles the
// others), and the index would be read to its beginning.
func newestFirst(filter ports.ExecutionFilter) string {
	if onlySince(filter) {
		return "id + 0 DESC"
	}
	return "id DESC"
}

// selected returns the conditions of the filter without the statuses.
func selected(filter ports.ExecutionFilter) *conditions {
	c := &conditions{}
	c.add(filter.JobName != "", "job_name = ?", filter.JobName)
	c.add(filter.Instance != 0, "instance_id = ?", filter.Instance)
	c.add(filter.ExitCode != "", "exit_code = ?", filter.ExitCode)
	c.add(filter.RedriveOf != 0, "redrive_of = ?", filter.RedriveOf)
	c.add(filter.Task != 0, "task_id = ?", filter.Task)
	c.add(filter.Parent != 0, "parent_id = ?", filter.Parent)
	c.add(filter.ParentCall != 0, "parent_call = ?", filter.ParentCall)
	c.add(filter.Before > 0, "id < ?", filter.Before)
	c.add(!filter.CreatedFrom.IsZero(), "created_at >= ?", instant{Time: filter.CreatedFrom})
	c.add(!filter.CreatedTo.IsZero(), "created_at < ?", instant{Time: filter.CreatedTo})
	return c
}

// pages selects the first page of each status; together they contain the IDs of the filter's page.
// Each is read from the end of an index. An IN of statuses would have to choose between sorting the
// frequent ones and searching for the rare ones. Times do not follow the order of IDs: for a range
// of times only the IDs are sorted, from an index.
func (r *explorer) pages(where *conditions, filter ports.ExecutionFilter) (string, []any) {
	var parts []string
	var all []any
	page := func(texts []string, values ...any) {
		all = append(append(all, values...), filter.Limit)
		parts = append(parts, "SELECT id FROM (SELECT id FROM {job_execution} WHERE "+strings.Join(texts, " AND ")+" ORDER BY id DESC LIMIT ?) AS page")
	}
	for _, status := range filter.Statuses {
		page(slices.Concat([]string{"status = ?"}, where.texts), slices.Concat([]any{status}, where.args)...)
	}
	if len(filter.Statuses) == 0 {
		page(where.texts, where.args...)
	}
	return r.store.sql(strings.Join(parts, " UNION ALL ")), all
}

// executions runs a query of executions. It allocates about as many rows at once: a slice that
// grows row by row would take twice the memory.
func (r *explorer) executions(query *gorm.DB, brief bool, about int) ([]core.JobExecution, error) {
	return r.scanned(query.Model(&jobExecution{}).Select(r.records[brief]), brief, about)
}

func (r *explorer) scanned(query *gorm.DB, brief bool, about int) ([]core.JobExecution, error) {
	var found []core.JobExecution
	err := gormtx.Each(query, func(row *executionRow) error {
		if found == nil {
			found = make([]core.JobExecution, 0, min(about, batchSize))
		}
		e := row.Row.with(row.Params)
		if e.Unreadable != nil && !brief {
			return e.Unreadable
		}
		found = append(found, e)
		return nil
	})
	return found, err
}

// Steps implements ports.Explorer. For an unknown execution, as for one without steps, the list is
// empty.
func (r *explorer) Steps(ctx context.Context, id core.JobExecutionID) ([]core.StepExecution, error) {
	steps, err := r.store.steps(ctx, "job_execution_id = ?", id)
	if err != nil {
		return nil, fmt.Errorf("list the steps of job execution %d: %w", id, err)
	}
	return steps, nil
}

type stepHistory struct {
	Row      stepExecution `gorm:"embedded"`
	Attempts int
}

// LastSteps implements ports.Explorer with one statement, which reads the wide
// columns (position, context) of the newest rows only.
func (r *explorer) LastSteps(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) (map[string]ports.StepHistory, error) {
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
	steps := make(map[string]ports.StepHistory, len(rows))
	for i := range rows {
		record, err := rows[i].Row.record()
		if err != nil {
			return nil, err
		}
		steps[record.Name] = ports.StepHistory{Last: *record, Attempts: rows[i].Attempts}
	}
	return steps, nil
}

// Instance implements ports.Explorer; it returns core.ErrNotFound if there is none.
func (r *explorer) Instance(ctx context.Context, jobName, key string) (*ports.JobInstance, error) {
	var rows []jobInstance
	err := gormtx.Find(r.store.session(ctx).Where("job_name = ? AND instance_key = ?", jobName, key), &rows)
	if err != nil {
		return nil, fmt.Errorf("read the instance of job %s: %w", jobName, err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("instance of job %s with these parameters: %w", jobName, core.ErrNotFound)
	}
	record := rows[0].record()
	return &record, nil
}

// Instances implements ports.Explorer: one statement, by key, never by offset.
func (r *explorer) Instances(ctx context.Context, filter ports.InstanceFilter) ([]ports.JobInstance, error) {
	if filter.Limit <= 0 {
		filter.Limit = defaultPageSize
	}
	where := &conditions{}
	where.add(filter.JobName != "", "job_name = ?", filter.JobName)
	where.add(len(filter.Keys) > 0, "instance_key IN ?", filter.Keys)
	where.add(filter.BaseKey != "", "base_key = ?", filter.BaseKey)
	where.add(filter.NoRedrives, "base_key <> ''")
	where.add(filter.OnlyBase, "base_key = instance_key")
	where.add(filter.NoBackfills, "NOT backfilled")
	where.add(filter.Before > 0, "id < ?", filter.Before)
	query := r.store.session(ctx).Order("id DESC").Limit(filter.Limit)
	if len(where.texts) > 0 {
		query = query.Where(where.text(), where.args...)
	}
	rows := make([]jobInstance, 0, min(filter.Limit, batchSize))
	if err := gormtx.Find(query, &rows); err != nil {
		return nil, fmt.Errorf("list job instances: %w", err)
	}
	list := make([]ports.JobInstance, len(rows))
	for i := range rows {
		list[i] = rows[i].record()
	}
	return list, nil
}

// LastPurged implements ports.Explorer: one statement.
func (r *explorer) LastPurged(ctx context.Context, jobName string) (*core.JobExecution, error) {
	var rows []struct {
		Param      jobExecutionParam `gorm:"embedded"`
		InstanceID core.JobInstanceID
	}
	err := r.store.scan(ctx, &rows, `SELECT instance_id, name, type, value, identifying FROM {purged_parameter}
		WHERE job_name = ? AND instance_id = (SELECT MAX(instance_id) FROM {purged_parameter} WHERE job_name = ?)`, jobName, jobName)
	if err != nil {
		return nil, fmt.Errorf("read the last deleted instance of job %s: %w", jobName, err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("deleted instance of job %s: %w", jobName, core.ErrNotFound)
	}
	list := make([]jobExecutionParam, len(rows))
	for i, row := range rows {
		list[i] = row.Param
	}
	params, err := parameters(list)
	if err != nil {
		return nil, fmt.Errorf("the last deleted instance of job %s: %w", jobName, err)
	}
	return &core.JobExecution{JobName: jobName, InstanceID: rows[0].InstanceID, Params: params}, nil
}

// someJobs is the typical number of jobs in a history.
const someJobs = 16

// Jobs implements ports.Explorer. For each job it reads index entries only: the next name, and the
// last entry of that name.
func (r *explorer) Jobs(ctx context.Context) ([]core.JobExecution, error) {
	list, err := r.executions(r.store.session(ctx).Where(r.store.sql(`id IN (
		WITH RECURSIVE jobs(name) AS (
			SELECT MIN(job_name) FROM {job_execution}
			UNION ALL SELECT (SELECT MIN(e.job_name) FROM {job_execution} e WHERE e.job_name > jobs.name) FROM jobs WHERE jobs.name IS NOT NULL)
		SELECT (SELECT MAX(e.id) FROM {job_execution} e WHERE e.job_name = jobs.name) FROM jobs WHERE jobs.name IS NOT NULL)`)), true, someJobs)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	slices.SortFunc(list, func(a, b core.JobExecution) int { return strings.Compare(a.JobName, b.JobName) })
	return list, nil
}
