package repository

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// journal implements ports.Journal.
type journal struct{ store *store }

// Visits implements ports.Journal with one statement. The database reads the whole journal of the
// instance and returns a row per attempt, flow, element and kind: a loop of many rounds around a
// step is one row, and so is a step that ran again in its visit because its worker was lost. Each
// visit of a split or a flow has its own log and its own rows.
func (r *journal) Visits(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) ([]ports.JournalRow, error) {
	var rows []journalRow
	err := r.store.scan(ctx, &rows, `SELECT job_execution_id, flow, ordinal, element, kind, verdict, target, step_id FROM (
		SELECT v.*, ROW_NUMBER() OVER (PARTITION BY job_execution_id, flow, element,
			CASE WHEN kind IN ('stop', 'jump', 'turn', 'adopt') THEN kind ELSE '' END ORDER BY ordinal DESC, step_id DESC) AS place
		FROM (
			SELECT s.job_execution_id, s.flow, s.ordinal, s.element, 'step' AS kind, '' AS verdict, '' AS target, s.id AS step_id
			FROM {step_execution} s JOIN {job_execution} e ON e.id = s.job_execution_id
			WHERE e.instance_id = ? AND e.id >= ? AND s.ordinal > 0 AND s.flow <> ?
			UNION ALL
			SELECT f.job_execution_id, f.flow, f.ordinal, f.element, f.kind, f.verdict, f.target, 0
			FROM {flow_visit} f JOIN {job_execution} e ON e.id = f.job_execution_id
			WHERE e.instance_id = ? AND e.id >= ?
		) v) newest WHERE place = 1`, id, since, ports.FlowFinally, id, since)
	if err != nil {
		return nil, fmt.Errorf("read the journal of job instance %d: %w", id, err)
	}
	visits := make([]ports.JournalRow, len(rows))
	for i, row := range rows {
		visits[i] = ports.JournalRow{
			FlowVisit: ports.FlowVisit{
				Visit: core.Visit{Flow: row.Flow, Ordinal: row.Ordinal, Element: row.Element},
				Kind:  row.Kind, Verdict: row.Verdict, Target: row.Target,
			},
			Execution: row.JobExecutionID, Step: row.StepID,
		}
	}
	return visits, nil
}

// journalRow is a visit: with a step execution or without.
type journalRow struct {
	JobExecutionID core.JobExecutionID
	Flow           string
	Ordinal        int64
	Element        string
	Kind           ports.VisitKind
	Verdict        string
	Target         string
	StepID         core.StepExecutionID
}

// StepsByID implements ports.Journal.
func (r *journal) StepsByID(ctx context.Context, ids []core.StepExecutionID) (map[core.StepExecutionID]core.StepExecution, error) {
	steps := make(map[core.StepExecutionID]core.StepExecution, len(ids))
	for batch := range slices.Chunk(ids, batchSize) {
		var rows []stepExecution
		if err := gormtx.Find(r.store.session(ctx).Where("id IN ?", batch), &rows); err != nil {
			return nil, fmt.Errorf("read %d step executions: %w", len(batch), err)
		}
		for _, s := range stepRecords(rows) {
			steps[s.ID] = s
		}
	}
	return steps, nil
}

// RecordVisits implements ports.Journal with one INSERT for a batch of rows. It compares no guard: a
// row records the attempt's visit, and the guard of the work itself decides whether that work
// commits.
func (r *journal) RecordVisits(ctx context.Context, id core.JobExecutionID, rows []ports.FlowVisit) (bool, error) {
	current, in := tx.From(ctx, r.store.db.Name())
	if !in || current.ReadOnly() {
		return false, nil
	}
	if err := r.store.storeVisits(ctx, id, rows); err != nil {
		return false, fmt.Errorf("journal of job execution %d: %w", id, err)
	}
	return true, nil
}

// storeVisits inserts rows of the journal. Branches of a split may store the same rows: existing
// rows stay.
func (s *store) storeVisits(ctx context.Context, id core.JobExecutionID, visits []ports.FlowVisit) error {
	if len(visits) == 0 {
		return nil
	}
	rows := flowVisits(s, id, visits)
	return s.session(ctx).Clauses(clause.OnConflict{DoNothing: true}).CreateInBatches(&rows, auditBatch).Error
}

func flowVisits(s *store, id core.JobExecutionID, visits []ports.FlowVisit) []flowVisit {
	rows := make([]flowVisit, len(visits))
	for i, v := range visits {
		rows[i] = flowVisit{
			JobExecutionID: id, Flow: v.Flow, Ordinal: v.Ordinal, Element: v.Element,
			Kind: v.Kind, Verdict: storable(s.mask(v.Verdict)), Target: v.Target, CreatedAt: clock(0),
		}
	}
	return rows
}
