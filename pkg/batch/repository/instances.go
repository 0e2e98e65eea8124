package repository

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

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
	query := r.store.session(ctx).Order("id DESC").Limit(filter.Limit)
	if filter.JobName != "" {
		query = query.Where("job_name = ?", filter.JobName)
	}
	if filter.BaseKey != "" {
		query = query.Where("base_key = ?", filter.BaseKey)
	}
	if filter.NoRedrives {
		query = query.Where("base_key <> ''")
	}
	if filter.OnlyBase {
		query = query.Where("base_key = instance_key")
	}
	if filter.NoBackfills {
		query = query.Where("NOT backfilled")
	}
	if filter.Before > 0 {
		query = query.Where("id < ?", filter.Before)
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
