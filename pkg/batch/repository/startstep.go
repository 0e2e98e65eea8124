package repository

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// StartStep implements ports.Transitions. The guarded UPDATE of the job execution comes first and
// holds its row, so that a take-over either comes before it (and the step is refused) or after it
// (and finds the step). The same holds for a stop: once a request is committed no step starts,
// except steps of `finally` (rule L13). It touches no indexed column.
//
// It refuses with core.ErrStopped after a stop request, else with a *core.TransitionError, with
// core.ErrLostOwner in the chain if owner or epoch differ.
func (r *transitions) StartStep(ctx context.Context, job ports.JobRef, start ports.StepStart) (*core.StepExecution, error) {
	name := start.Name
	row, err := newStep(job, name, start.Earlier)
	if err != nil {
		return nil, fmt.Errorf("start step %s: %w", name, err)
	}
	row.Flow, row.Ordinal, row.Element = start.Visit.Flow, start.Visit.Ordinal, start.Visit.Element
	returned := []clause.Column{{Name: "id"}, {Name: "started_at"}}
	if start.Noop {
		row.Status, row.LastMove, row.ExitCode, row.EndedAt = core.StatusCompleted, ports.MoveComplete, core.ExitNoop, clock(0)
		returned = append(returned, clause.Column{Name: "ended_at"})
	}
	v := verdict{answer: core.Applied}
	if done, err := r.startAtOnce(ctx, job, start, row); err != nil {
		return nil, fmt.Errorf("start step %s of job execution %d: %w", name, job.ID, err)
	} else if done {
		r.answered(ctx, stepMachine, int64(row.ID), ports.MoveTo(row.Status), actStartStep, v)
		return row.record()
	}
	var found *stepExecution
	err = r.store.transact(ctx, func(ctx context.Context) error {
		held, err := r.holdJob(ctx, job, 1, start.Always || start.Visit.Flow == ports.FlowFinally)
		if err != nil {
			return err
		}
		if held == nil {
			v, err = r.refuseStep(ctx, job)
			return err
		}
		if start.Again {
			if found, err = r.startedBefore(ctx, job, start, row); err != nil || found != nil {
				return err
			}
		}
		row.JobName = held.JobName
		if err := r.store.session(ctx).Clauses(clause.Returning{Columns: returned}).Create(row).Error; err != nil {
			return err
		}
		if err := r.store.storeVisits(ctx, job.ID, start.Before); err != nil {
			return err
		}
		return r.store.session(ctx).Create(started(row)).Error
	})
	if err != nil {
		return nil, fmt.Errorf("start step %s of job execution %d: %w", name, job.ID, err)
	}
	if v.err != nil {
		if !errors.Is(v.err, core.ErrStopped) {
			r.answered(ctx, jobMachine, int64(job.ID), ports.MoveTo(core.StatusStarted), actStartStep, v)
		}
		return nil, fmt.Errorf("start step %s: %w", name, v.err)
	}
	if found != nil {
		row = found
	}
	r.answered(ctx, stepMachine, int64(row.ID), ports.MoveTo(row.Status), actStartStep, v)
	return row.record()
}

func started(row *stepExecution) *audit {
	return &audit{
		At: clock(0), Act: actStartStep, Actor: row.Owner, JobExecutionID: row.JobExecutionID,
		StepExecutionID: row.ID, ToStatus: row.Status, Epoch: row.Epoch,
	}
}

// startAtOnce starts a step with one statement. If the guard does not hold, it does nothing.
func (r *transitions) startAtOnce(ctx context.Context, job ports.JobRef, start ports.StepStart, row *stepExecution) (bool, error) {
	if !r.store.hasAtOnce() || start.Again || job.Branch != 0 || len(start.Before) > auditBatch {
		return false, nil
	}
	once := &atOnce{store: r.store}
	text, args := holdSQL(job, 1, start.Always || start.Visit.Flow == ports.FlowFinally)
	once.add("held", text, args...)
	once.insert("begun", row, "held", map[string]string{"job_name": "job_name"}, " RETURNING id, job_name, started_at, ended_at")
	for i, visit := range flowVisits(r.store, job.ID, start.Before) {
		once.insert("visit"+strconv.Itoa(i), &visit, "held", nil, " ON CONFLICT DO NOTHING")
	}
	once.insert("noted", started(row), "begun", map[string]string{"step_execution_id": "id"}, "")
	var rows []stepExecution
	err := gormtx.Scan(once.statement(ctx, "SELECT * FROM begun"), &rows)
	if r.store.alone(ctx) && mustRepeat(err) {
		return false, nil
	}
	if err != nil || len(rows) == 0 {
		return false, err
	}
	row.ID, row.JobName, row.StartedAt, row.EndedAt = rows[0].ID, rows[0].JobName, rows[0].StartedAt, rows[0].EndedAt
	return true, nil
}

// startedBefore returns the row that the same request has created, if its reply was lost. The
// caller holds the job's row, so the transaction of that request has ended.
func (r *transitions) startedBefore(ctx context.Context, job ports.JobRef, start ports.StepStart, row *stepExecution) (*stepExecution, error) {
	var rows []stepExecution
	query := r.store.session(ctx).Where("job_execution_id = ? AND name = ? AND flow = ? AND ordinal = ? AND element = ?",
		job.ID, start.Name, start.Visit.Flow, start.Visit.Ordinal, start.Visit.Element).
		Where("owner = ? AND epoch = ? AND status = ? AND last_move = ?", row.Owner, row.Epoch, row.Status, row.LastMove)
	if err := query.Order("id DESC").Limit(1).Find(&rows).Error; err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// newStep returns the row of a new step execution, which continues where earlier ended. Counters
// begin at zero, because they count one attempt (rule C11); the earlier attempts' counts are kept
// separately.
func newStep(job ports.JobRef, name string, earlier *core.StepExecution) (*stepExecution, error) {
	row := &stepExecution{
		JobExecutionID: job.ID, Name: name, Status: core.StatusStarted,
		Owner: job.Owner.String(), Epoch: job.Epoch, LastMove: ports.MoveStart, LastEpoch: job.Epoch, StartedAt: clock(0),
	}
	if job.Branch != 0 {
		row.BranchID = &job.Branch
	}
	if earlier == nil {
		row.FirstID = new(core.StepExecutionID)
		return row, nil
	}
	if earlier.First != 0 {
		row.FirstID = &earlier.First
	}
	if err := checkPosition(earlier.Position); err != nil {
		return nil, err
	}
	var err error
	if row.BeforeCounts, err = encodeCounts(earlier.Carried()); err != nil {
		return nil, err
	}
	row.Position = string(earlier.Position)
	if earlier.Context != nil {
		text, err := earlier.Context.Encode()
		if err != nil {
			return nil, err
		}
		row.Context = string(text)
	}
	return row, nil
}
