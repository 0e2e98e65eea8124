package repository

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// parks implements ports.Parks.
type parks struct {
	*moves
	parts     *assignments
	takeovers *takeovers
	reads     *explorer
	places    *placements
}

// Park implements ports.Parks: the guarded UPDATE of the job, one of its open steps that are not
// partitions, and with Stopping one of the partitions that no worker has taken.
func (r *parks) Park(ctx context.Context, ref ports.JobRef, p ports.Parking) (core.Answer, error) {
	m := ownJobMove(ref, ports.Executions().Move(ports.MovePark), actPark)
	m.merge, m.visits = p.Context, p.Visits
	if !p.Stopping {
		m.condition = "NOT stop_requested"
	}
	m.set("owner = ''")
	m.set("lease_until = NULL")
	var answer core.Answer
	_, err := r.recorded(ctx, ref.Owner.String(), func(ctx context.Context, l *ledger) (err error) {
		if answer, err = r.transition(ctx, m); err != nil || answer != core.Applied {
			return refusal(err)
		}
		if err := r.parkSteps(ctx, walkOf{ofJob, int64(ref.ID)}, l); err != nil {
			return err
		}
		if p.Stopping {
			if err := r.stopUnassigned(ctx, ref.ID, l); err != nil {
				return err
			}
		}
		return r.announceResume(ctx, ref.ID)
	})
	refused, ok := errors.AsType[*refusalError](err)
	switch {
	case ok:
		return answer, refused.reason
	case err != nil:
		return "", fmt.Errorf("park job execution %d: %w", ref.ID, err)
	}
	return answer, nil
}

// Ready implements ports.Parks, with one statement for each kind.
func (r *parks) Ready(ctx context.Context, after ports.ReadyPlace, limit int) ([]ports.Ready, error) {
	// The job is a subquery for each partition, not a join: then the first partitions are found by
	// their index. A join would read and sort the partitions of all active jobs.
	parts, err := r.ready(ctx, readyPart+` WHERE s.`+openStep+` AND s.manager_id IS NOT NULL AND s.id > ? AND (s.owner = '' OR s.lease_until <= {now})
			AND (SELECT j.active FROM {job_execution} j WHERE j.id = s.job_execution_id) = 1 AND NOT `+placedPart+` ORDER BY s.id LIMIT ?`, after.Part, "", limit)
	var parked []ports.Ready
	if err == nil {
		parked, err = r.ready(ctx, readyExecution+` WHERE status IN ? AND owner = '' AND id > ? AND NOT `+waits+` AND NOT `+placedExecution+` ORDER BY id LIMIT ?`,
			ports.Executions().Move(ports.MoveResume).From, after.Execution, "", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("find work that is ready: %w", err)
	}
	return append(parked, parts...), nil
}

const (
	resumable   = "SELECT id FROM {job_execution} WHERE status IN ? AND owner = '' AND definition_hash NOT IN ? AND NOT " + waits + " AND NOT " + placedExecution + " ORDER BY id LIMIT ?"
	ofParkedOne = "status IN ? AND parent_id IN (SELECT p.id FROM {job_execution} p WHERE p.active = 1 AND p.owner = '')"
)

// Work implements ports.Parks. The rows are counted: for EXISTS PostgreSQL may read the whole history, in the hope to
// find the first row soon.
func (r *parks) Work(ctx context.Context, req ports.AssignRequest) (found ports.FoundWork, err error) {
	except := append([]string{"none"}, req.Except...)
	var row struct{ Parts, Children, Parked int64 }
	err = r.store.scan(ctx, &row, "SELECT (SELECT count(*) FROM ("+freeParts+") AS p) AS parts, (SELECT count(*) FROM {job_execution} WHERE "+ofParkedOne+") AS children, (SELECT count(*) FROM ("+resumable+") AS r) AS parked",
		except, req.Worker, 1, running(), ports.Executions().Move(ports.MoveResume).From, except, req.Worker, 1)
	if err != nil {
		return found, fmt.Errorf("find work: %w", err)
	}
	return ports.FoundWork{Parts: row.Parts > 0, Children: row.Children > 0, Parked: row.Parked > 0}, nil
}

// Resumable implements ports.Parks.
func (r *parks) Resumable(ctx context.Context, worker string, limit int, except []string) ([]core.JobExecutionID, error) {
	var ids []core.JobExecutionID
	err := r.store.scan(ctx, &ids, resumable, ports.Executions().Move(ports.MoveResume).From, append([]string{"none"}, except...), worker, limit)
	if err != nil {
		return nil, fmt.Errorf("find parked executions: %w", err)
	}
	return ids, nil
}

// RefuseResume implements ports.Parks.
func (r *parks) RefuseResume(ctx context.Context, id core.JobExecutionID, reason string) error {
	err := r.store.exec(ctx, "UPDATE {job_execution} SET error_text = ? WHERE id = ? AND owner = '' AND status IN ?",
		storable(reason), id, ports.Executions().Move(ports.MoveResume).From).Error
	if err != nil {
		return fmt.Errorf("job execution %d: store the reason that it is not resumed: %w", id, err)
	}
	return nil
}

// Resume implements ports.Parks. A process that lost the reply finds its own transition.
func (r *parks) Resume(ctx context.Context, id core.JobExecutionID, req ports.ResumeRequest) (ports.Resumed, error) {
	if req.Lease <= 0 {
		return ports.Resumed{}, fmt.Errorf("resume job execution %d: a lease of %v is not positive", id, req.Lease)
	}
	if err := r.parts.stopLost(ctx, id, req.Dead); err != nil {
		return ports.Resumed{}, fmt.Errorf("resume job execution %d: %w", id, err)
	}
	var before []jobExecution // to begin it if it has not started
	_, err := r.recorded(ctx, req.Owner.String(), func(ctx context.Context, l *ledger) error {
		if err := r.store.scan(ctx, &before, "SELECT instance_id, started_at FROM {job_execution} WHERE id = ?", id); err != nil {
			return err
		}
		if err := r.resumeJob(ctx, id, req, l); err != nil {
			return err
		}
		_, err := r.resumeSteps(ctx, walkOf{ofJob, int64(id)}, req.Owner, l)
		return err
	})
	if err != nil {
		return ports.Resumed{}, fmt.Errorf("resume job execution %d: %w", id, err)
	}
	exec, err := r.reads.Execution(ctx, id)
	if err != nil {
		return ports.Resumed{}, err
	}
	steps, err := r.reads.Steps(ctx, id)
	if err != nil {
		return ports.Resumed{}, err
	}
	if exec.Owner.String() != req.Owner.String() { // its lease had expired before it was read
		return ports.Resumed{}, fmt.Errorf("resume job execution %d: %w", id, core.ErrLostOwner)
	}
	resumed := ports.Resumed{Execution: exec}
	if len(before) > 0 && before[0].StartedAt.IsZero() {
		resumed.First = true
		if resumed.Previous, err = r.reads.before(ctx, exec); err != nil {
			return ports.Resumed{}, err
		}
	}
	for _, s := range steps {
		if !s.Status.IsOver() && s.Manager == 0 && s.Branch == 0 {
			resumed.Steps = append(resumed.Steps, s)
		}
	}
	return resumed, nil
}

func (r *parks) resumeJob(ctx context.Context, id core.JobExecutionID, req ports.ResumeRequest, l *ledger) error {
	start, stop := ports.Executions().Move(ports.MoveResume), ports.Executions().Move(ports.MoveResumeToStop)
	var rows []struct {
		Row    jobExecution `gorm:"embedded"`
		Placed bool
	}
	err := r.store.scan(ctx, &rows, `UPDATE {job_execution} SET status_before = status,
			status = CASE WHEN stop_requested THEN ? ELSE ? END, last_move = CASE WHEN stop_requested THEN ? ELSE ? END,
			last_epoch = epoch, epoch = epoch + 1, owner = ?, lease_until = {later}, error_text = '',
			started_at = COALESCE(started_at, {now})
		WHERE id = ? AND owner = '' AND status IN ? AND NOT `+waits+` AND NOT `+placedExecution+`
		RETURNING status, status_before, epoch, EXISTS (SELECT 1 FROM {placement} WHERE child_id = {job_execution}.id) AND NOT stop_requested AS placed`,
		stop.To, start.To, stop.Name, start.Name, req.Owner.String(), req.Lease.Microseconds(), id, start.From, req.Worker)
	if err != nil {
		return err
	}
	if len(rows) > 0 && rows[0].Placed {
		own, err := r.places.startPlaced(ctx, "child_id", int64(id), req.Worker)
		if err != nil {
			return err
		}
		if !own { // the transaction is rolled back
			refused := jobMove(id, start, actResume).refusal(rows[0].Row.StatusBefore)
			refused.Epoch, refused.Reason = rows[0].Row.Epoch, errNotAssigned.Error()
			return refused
		}
	}
	if len(rows) > 0 {
		move := start
		if rows[0].Row.Status == stop.To {
			move = stop
		}
		l.note(jobMachine, int64(id), audit{JobExecutionID: id, FromStatus: rows[0].Row.StatusBefore, Epoch: rows[0].Row.Epoch}, actResume, move)
		return nil
	}
	var found []jobExecution
	err = r.store.scan(ctx, &found, "SELECT status, owner, epoch, last_move, last_epoch FROM {job_execution} WHERE id = ?", id)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return core.ErrNotFound
	case found[0].Owner == req.Owner.String() && (found[0].LastMove == start.Name || found[0].LastMove == stop.Name):
		return nil // the reply was lost
	}
	refused := jobMove(id, start, actResume).refusal(found[0].Status)
	refused.Epoch, refused.Last = found[0].Epoch, core.Mark{Move: found[0].LastMove, Epoch: found[0].LastEpoch}
	refused.Reason = "it has an owner, waits for partitions, tasks or child jobs, or has a placement and is not assigned to this worker"
	return refused
}

// RecoverChildren implements ports.Parks.
func (r *parks) RecoverChildren(ctx context.Context, actor string, dead func(core.Owner) bool) error {
	lost, err := r.takeovers.lostOf(ctx, ofParkedOne, dead)
	if err != nil {
		return fmt.Errorf("find child jobs that lost their owner: %w", err)
	}
	for _, c := range lost {
		if _, err := r.takeovers.recover(ctx, c, actor); err != nil {
			return fmt.Errorf("recover job execution %d: %w", c.Row.ID, err)
		}
	}
	return nil
}
