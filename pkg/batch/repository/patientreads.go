package repository

import (
	"context"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

type patientExplorer struct {
	ports.Explorer
	patience
}

// Execution implements ports.Explorer.
func (r patientExplorer) Execution(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (*core.JobExecution, error) { return r.Explorer.Execution(ctx, id) })
}

// Executions implements ports.Explorer.
func (r patientExplorer) Executions(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecution, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]core.JobExecution, error) { return r.Explorer.Executions(ctx, filter) })
}

// Steps implements ports.Explorer.
func (r patientExplorer) Steps(ctx context.Context, id core.JobExecutionID) ([]core.StepExecution, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]core.StepExecution, error) { return r.Explorer.Steps(ctx, id) })
}

// LastSteps implements ports.Explorer.
func (r patientExplorer) LastSteps(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) (map[string]ports.StepHistory, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (map[string]ports.StepHistory, error) {
		return r.Explorer.LastSteps(ctx, id, since)
	})
}

// Instance implements ports.Explorer.
func (r patientExplorer) Instance(ctx context.Context, jobName, key string) (*ports.JobInstance, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (*ports.JobInstance, error) { return r.Explorer.Instance(ctx, jobName, key) })
}

// Instances implements ports.Explorer.
func (r patientExplorer) Instances(ctx context.Context, filter ports.InstanceFilter) ([]ports.JobInstance, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.JobInstance, error) { return r.Explorer.Instances(ctx, filter) })
}

// LastExecution implements ports.Explorer.
func (r patientExplorer) LastExecution(ctx context.Context, jobName, key string) (*core.JobExecution, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (*core.JobExecution, error) {
		return r.Explorer.LastExecution(ctx, jobName, key)
	})
}

// ExecutionIDs implements ports.Explorer.
func (r patientExplorer) ExecutionIDs(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecutionID, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]core.JobExecutionID, error) { return r.Explorer.ExecutionIDs(ctx, filter) })
}

// LastPurged implements ports.Explorer.
func (r patientExplorer) LastPurged(ctx context.Context, jobName string) (*core.JobExecution, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (*core.JobExecution, error) { return r.Explorer.LastPurged(ctx, jobName) })
}

// Jobs implements ports.Explorer.
func (r patientExplorer) Jobs(ctx context.Context) ([]core.JobExecution, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]core.JobExecution, error) { return r.Explorer.Jobs(ctx) })
}

type patientBulk struct {
	ports.BulkExplorer
	patience
}

// StepsOf implements ports.BulkExplorer.
func (r patientBulk) StepsOf(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID][]core.StepExecution, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (map[core.JobExecutionID][]core.StepExecution, error) {
		return r.BulkExplorer.StepsOf(ctx, ids...)
	})
}

// StepEntries implements ports.BulkExplorer.
func (r patientBulk) StepEntries(ctx context.Context, id core.JobInstanceID, since, until core.JobExecutionID) ([]ports.StepEntry, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.StepEntry, error) {
		return r.BulkExplorer.StepEntries(ctx, id, since, until)
	})
}

// PartTotals implements ports.BulkExplorer.
func (r patientBulk) PartTotals(ctx context.Context, id core.JobExecutionID) (map[core.StepExecutionID]ports.PartTotal, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (map[core.StepExecutionID]ports.PartTotal, error) {
		return r.BulkExplorer.PartTotals(ctx, id)
	})
}

// NewestAttempts implements ports.BulkExplorer.
func (r patientBulk) NewestAttempts(ctx context.Context, dead func(core.Owner) bool, ids ...core.JobInstanceID) (map[core.JobInstanceID]ports.NewestAttempt, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (map[core.JobInstanceID]ports.NewestAttempt, error) {
		return r.BulkExplorer.NewestAttempts(ctx, dead, ids...)
	})
}

// Judged implements ports.BulkExplorer.
func (r patientBulk) Judged(ctx context.Context, req ports.JudgedRequest) ([]ports.JudgedExecution, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.JudgedExecution, error) { return r.BulkExplorer.Judged(ctx, req) })
}

// StepWork implements ports.BulkExplorer.
func (r patientBulk) StepWork(ctx context.Context, ids ...core.JobExecutionID) (ports.StepWork, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (ports.StepWork, error) { return r.BulkExplorer.StepWork(ctx, ids...) })
}

// LastExecutions implements ports.BulkExplorer.
func (r patientBulk) LastExecutions(ctx context.Context, ids ...core.JobInstanceID) (map[core.JobInstanceID]core.JobExecution, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (map[core.JobInstanceID]core.JobExecution, error) {
		return r.BulkExplorer.LastExecutions(ctx, ids...)
	})
}

// SkipCounts implements ports.BulkExplorer.
func (r patientBulk) SkipCounts(ctx context.Context, id core.JobExecutionID) ([]ports.SkipCount, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.SkipCount, error) { return r.BulkExplorer.SkipCounts(ctx, id) })
}

// Redrives implements ports.BulkExplorer.
func (r patientBulk) Redrives(ctx context.Context, of core.JobExecutionID, limit int) ([]ports.Redrive, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.Redrive, error) { return r.BulkExplorer.Redrives(ctx, of, limit) })
}

type patientSearches struct {
	ports.Searches
	patience
}

// Search implements ports.Searches.
func (r patientSearches) Search(ctx context.Context, search ports.ExecutionSearch) (ports.Found, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (ports.Found, error) { return r.Searches.Search(ctx, search) })
}

// ParameterNames implements ports.Searches.
func (r patientSearches) ParameterNames(ctx context.Context, limit int) ([]string, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]string, error) { return r.Searches.ParameterNames(ctx, limit) })
}

type patientSkips struct {
	ports.Skips
	patience
}

// SkippedItems implements ports.Skips.
func (r patientSkips) SkippedItems(ctx context.Context, filter ports.SkipFilter) ([]core.SkippedItem, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]core.SkippedItem, error) { return r.Skips.SkippedItems(ctx, filter) })
}

// LastSkipped implements ports.Skips.
func (r patientSkips) LastSkipped(ctx context.Context, filter ports.SkipFilter) (int64, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (int64, error) { return r.Skips.LastSkipped(ctx, filter) })
}

// SkippedItem implements ports.Skips.
func (r patientSkips) SkippedItem(ctx context.Context, id int64) (*core.SkippedItem, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (*core.SkippedItem, error) { return r.Skips.SkippedItem(ctx, id) })
}

// WindowEnd implements ports.Skips.
func (r patientSkips) WindowEnd(ctx context.Context, filter ports.SkipFilter) (int64, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (int64, error) { return r.Skips.WindowEnd(ctx, filter) })
}

type patientAttempts struct {
	ports.Attempts
	patience
}

// LeftBy implements ports.Attempts.
func (r patientAttempts) LeftBy(ctx context.Context, instance core.JobInstanceID, step string, before core.StepExecutionID) ([]item.Position, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]item.Position, error) {
		return r.Attempts.LeftBy(ctx, instance, step, before)
	})
}

// LastCompleted implements ports.Attempts.
func (r patientAttempts) LastCompleted(ctx context.Context, job, step string, before core.JobInstanceID) (item.Position, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (item.Position, error) {
		return r.Attempts.LastCompleted(ctx, job, step, before)
	})
}

// Newest implements ports.Attempts.
func (r patientAttempts) Newest(ctx context.Context, instance core.JobInstanceID, step string) ([]core.StepExecution, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]core.StepExecution, error) {
		return r.Attempts.Newest(ctx, instance, step)
	})
}

// LeftBehind implements ports.Attempts.
func (r patientAttempts) LeftBehind(ctx context.Context, instance core.JobInstanceID) ([]ports.LeftBehind, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.LeftBehind, error) { return r.Attempts.LeftBehind(ctx, instance) })
}

// OpenAttempts implements ports.Attempts.
func (r patientAttempts) OpenAttempts(ctx context.Context, instance core.JobInstanceID, step string, first, before core.StepExecutionID) (repository string, owners []core.Owner, err error) {
	err = writing(ctx, r.patience, func(ctx context.Context) (err error) {
		repository, owners, err = r.Attempts.OpenAttempts(ctx, instance, step, first, before)
		return err
	})
	return repository, owners, err
}

type patientJournal struct {
	ports.Journal
	patience
}

// Visits implements ports.Journal.
func (r patientJournal) Visits(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) ([]ports.JournalRow, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.JournalRow, error) { return r.Journal.Visits(ctx, id, since) })
}

// StepsByID implements ports.Journal.
func (r patientJournal) StepsByID(ctx context.Context, ids []core.StepExecutionID) (map[core.StepExecutionID]core.StepExecution, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (map[core.StepExecutionID]core.StepExecution, error) {
		return r.Journal.StepsByID(ctx, ids)
	})
}

type patientLogs struct {
	ports.Logs
	patience
}

// LogPage implements ports.LogReader.
func (r patientLogs) LogPage(ctx context.Context, filter ports.LogFilter) (ports.LogPage, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (ports.LogPage, error) { return r.Logs.LogPage(ctx, filter) })
}

type patientSeries struct {
	ports.Series
	patience
}

// SampledSteps implements ports.Series.
func (r patientSeries) SampledSteps(ctx context.Context, req ports.SampledRequest) ([]ports.SampledStep, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.SampledStep, error) { return r.Series.SampledSteps(ctx, req) })
}

// StoredSeries implements ports.Series.
func (r patientSeries) StoredSeries(ctx context.Context, ids ...core.StepExecutionID) (map[core.StepExecutionID]ports.StepSeries, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (map[core.StepExecutionID]ports.StepSeries, error) {
		return r.Series.StoredSeries(ctx, ids...)
	})
}

type patientSpans struct {
	ports.Spans
	patience
}

// AttemptSpans implements ports.Spans, and the others it and ports.Parts.
func (r patientSpans) AttemptSpans(ctx context.Context, id core.JobInstanceID, limit int) ([]ports.AttemptSpan, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.AttemptSpan, error) { return r.Spans.AttemptSpans(ctx, id, limit) })
}

// StepSpans waits.
func (r patientSpans) StepSpans(ctx context.Context, id core.JobExecutionID, after core.StepExecutionID, limit int) ([]ports.StepSpan, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.StepSpan, error) { return r.Spans.StepSpans(ctx, id, after, limit) })
}

// MainSpans waits.
func (r patientSpans) MainSpans(ctx context.Context, id core.JobExecutionID, after core.StepExecutionID, limit int) ([]ports.StepSpan, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.StepSpan, error) { return r.Spans.MainSpans(ctx, id, after, limit) })
}

// Holds waits.
func (r patientSpans) Holds(ctx context.Context, id core.JobExecutionID, after int64) (list []ports.Hold, next int64, err error) {
	err = writing(ctx, r.patience, func(ctx context.Context) (err error) { list, next, err = r.Spans.Holds(ctx, id, after); return err })
	return list, next, err
}

// TaskSpans waits.
func (r patientSpans) TaskSpans(ctx context.Context, steps []core.StepExecutionID, limit int) ([]ports.TaskSpan, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.TaskSpan, error) { return r.Spans.TaskSpans(ctx, steps, limit) })
}

// ChildSpans waits.
func (r patientSpans) ChildSpans(ctx context.Context, parents []core.JobExecutionID, limit int) ([]ports.ChildSpan, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.ChildSpan, error) { return r.Spans.ChildSpans(ctx, parents, limit) })
}

// WorkerNames waits.
func (r patientSpans) WorkerNames(ctx context.Context) (map[core.Owner]string, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (map[core.Owner]string, error) { return r.Spans.WorkerNames(ctx) })
}

type patientParts struct {
	ports.Parts
	patience
}

// PartedSteps waits.
func (r patientParts) PartedSteps(ctx context.Context, id core.JobExecutionID) ([]ports.StepSpan, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.StepSpan, error) { return r.Parts.PartedSteps(ctx, id) })
}

// PartCounts waits.
func (r patientParts) PartCounts(ctx context.Context, manager core.StepExecutionID) (map[core.Status]int, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (map[core.Status]int, error) { return r.Parts.PartCounts(ctx, manager) })
}

// PartPage waits.
func (r patientParts) PartPage(ctx context.Context, f ports.PartFilter) ([]ports.ListedPart, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.ListedPart, error) { return r.Parts.PartPage(ctx, f) })
}
