package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// assignments implements ports.Assignments.
type assignments struct {
	*moves
	reads  *explorer
	places *placements
}

const assignCandidates = 100

// AssignPartition implements ports.Assignments. The guarded UPDATE compares again the values that
// were read: of several concurrent workers one gets the partition, and a worker that has extended
// its lease meanwhile keeps it.
func (r *assignments) AssignPartition(ctx context.Context, req ports.AssignRequest) (*ports.Assignment, error) {
	if req.Lease <= 0 {
		return nil, fmt.Errorf("assign a partition: a lease of %v is not positive", req.Lease)
	}
	found, err := r.assignable(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("find partitions: %w", err)
	}
	for _, c := range found {
		dead := c.isDead(req.Dead)
		if held := c.Row.Owner != "" && !c.Expired && !dead; held || slices.Contains(req.Except, c.DefinitionHash) {
			if req.Part != 0 {
				return nil, &ports.NotNowError{Part: c.Row.ID, Definition: c.DefinitionHash}
			}
			continue
		}
		taken, resumed, err := r.assign(ctx, c, dead, req)
		if err != nil {
			return nil, fmt.Errorf("assign step execution %d: %w", c.Row.ID, err)
		}
		if !taken {
			continue
		}
		a, err := r.assignment(ctx, c.Row.ID)
		if err != nil {
			return nil, err
		}
		if a.Step.Owner.String() != req.Owner.String() || a.Step.Epoch != c.Row.Epoch+1 { // another worker has taken it since
			continue
		}
		a.Resumed = resumed
		return a, nil
	}
	return nil, nil
}

type assignable struct {
	Row            stepExecution `gorm:"embedded"`
	Expired        bool
	StopRequested  bool
	DefinitionHash string
	Placed         bool
}

func (c assignable) isDead(dead func(core.Owner) bool) bool {
	return c.Row.Owner != "" && dead != nil && dead(ports.ParseOwner(c.Row.Owner))
}

const (
	mayAssign = "s." + openStep + " AND s.manager_id IS NOT NULL AND (s.owner = '' OR s.lease_until IS NOT NULL)"
	freeParts = `SELECT s.id FROM {step_execution} s WHERE ` + mayAssign + ` AND (SELECT CASE WHEN active = 1 AND definition_hash NOT IN ? THEN 1 END
			FROM {job_execution} WHERE id = s.job_execution_id) = 1 AND NOT ` + placedPart + ` ORDER BY s.id LIMIT ?`
)

// assignable reads the candidates for the request: the partition that it names, with any
// definition, or several.
func (r *assignments) assignable(ctx context.Context, req ports.AssignRequest) (found []assignable, err error) {
	which, args := mayAssign+" AND j.active = 1 AND s.id = ? AND s.epoch = ? AND NOT "+placedPart, []any{req.Part, req.Epoch, req.Worker}
	if req.Part == 0 { // the first ones by their index, as in Ready
		which = `s.id IN (SELECT id FROM (` + freeParts + `) AS first)`
		args = []any{append([]string{"none"}, req.Except...), req.Worker, assignCandidates}
	}
	err = r.store.scan(ctx, &found, `SELECT s.id, s.flow, s.status, s.owner, s.epoch, s.assigned_count, s.lease_until <= {now} AS expired, j.stop_requested AND NOT `+ofFinally+` AS stop_requested, j.definition_hash,
		EXISTS (SELECT 1 FROM {placement} p WHERE p.part_id = s.id) AS placed
		FROM {step_execution} s JOIN {job_execution} j ON j.id = s.job_execution_id WHERE `+which+` ORDER BY s.id`, args...)
	return found, err
}

// assign makes the transition that is due for a partition. It reports whether the caller owns the
// partition now, and returns the steps of a branch that it resumes.
func (r *assignments) assign(ctx context.Context, c assignable, dead bool, req ports.AssignRequest) (taken bool, resumed []ports.StepRef, err error) {
	ref := ports.StepRef{ID: c.Row.ID, Owner: ports.ParseOwner(c.Row.Owner), Epoch: c.Row.Epoch}
	m := stepMove(ref, ports.Executions().Move(ports.MoveAssign), actAssign)
	m.race = true
	switch {
	case c.StopRequested:
		m.move = ports.Executions().Move(ports.MoveStop)
		reason := "its worker returned it, and a stop was requested"
		if c.Row.Owner != "" {
			reason = "its worker is lost, and a stop was requested"
		}
		m.outcome(core.ExitStopped, reason, "")
		m.set("ended_at = COALESCE(ended_at, {now})")
	case c.Row.AssignedCount >= cmp.Or(req.MaxAttempts, ports.DefaultPartAttempts):
		m.move = ports.Executions().Move(ports.MoveTakeOver)
		m.outcome(core.ExitFailed, fmt.Sprintf("%s, for the %d. time", lostOwner, c.Row.AssignedCount), "")
		m.set("ended_at = COALESCE(ended_at, {now})")
	default:
		m.set("owner = ?", req.Owner.String())
		m.set("error_text = ''") // of a worker that refused the partition
		m.set("assigned_from = CASE WHEN owner = '' THEN assigned_from WHEN assigned_from = '' THEN owner ELSE assigned_from || ' ' || owner END")
		m.set("started_at = CASE WHEN assigned_count = 0 THEN {now} ELSE started_at END") // until then it waited since the plan
		m.set("assigned_count = assigned_count + 1")
		m.set("lease_until = {later}", req.Lease.Microseconds())
	}
	m.set("epoch = epoch + 1")
	if m.move.Name == ports.MoveAssign {
		m.condition, m.conditionArgs = unlessStopped, []any{c.Row.ID, c.Row.ID}
	}
	if c.Row.Owner != "" && !dead {
		m.condition = strings.TrimPrefix(m.condition+" AND lease_until <= {now}", " AND ")
	}
	var answer core.Answer
	_, err = r.recorded(ctx, req.Owner.String(), func(ctx context.Context, l *ledger) (err error) {
		if answer, err = r.transition(ctx, m); err != nil || answer != core.Applied || m.move.Name != ports.MoveAssign {
			return err
		}
		if c.Placed {
			if own, err := r.places.startPlaced(ctx, "part_id", int64(c.Row.ID), req.Worker); err != nil || !own {
				return errors.Join(err, refusal(errNotAssigned))
			}
		}
		if c.Row.Flow == "" {
			return nil
		}
		resumed, err = r.takeBranch(ctx, c.Row.ID, req.Owner, l)
		return err
	})
	if _, lost := errors.AsType[*core.TransitionError](err); lost || errors.Is(err, errNotAssigned) { // another worker was faster
		return false, nil, nil
	}
	return err == nil && answer == core.Applied && m.move.Name == ports.MoveAssign, resumed, err
}

// takeBranch gives the unfinished steps of a branch to the worker that was assigned the branch's
// partition. A step of a lost worker ends and runs again from its last commit. A step that was
// given back continues in the same attempt, as the steps of a resumed execution do, under the
// guards that takeBranch returns.
func (r *assignments) takeBranch(ctx context.Context, part core.StepExecutionID, owner core.Owner, l *ledger) ([]ports.StepRef, error) {
	lost, err := r.failOpen(ctx, ofBranch, int64(part), openStep+" AND status <> 'PARKED'", lostOwner)
	if err != nil {
		return nil, err
	}
	l.noteSteps(lost, actAssign, ports.Executions().Move(ports.MoveEndWithJob))
	return r.resumeSteps(ctx, walkOf{ofBranch, int64(part)}, owner, l)
}

func (r *assignments) assignment(ctx context.Context, id core.StepExecutionID) (*ports.Assignment, error) {
	steps, err := r.store.steps(ctx, "id = ?", id)
	if err != nil || len(steps) == 0 {
		return nil, errors.Join(err, fmt.Errorf("read the partition %d", id))
	}
	a := &ports.Assignment{Step: steps[0]}
	var managers []struct {
		Row    stepExecution `gorm:"embedded"`
		Shared string
	}
	if err := r.store.scan(ctx, &managers, "SELECT * FROM {step_execution} WHERE id = ?", a.Step.Manager); err != nil {
		return nil, err
	}
	if len(managers) == 0 {
		return nil, fmt.Errorf("step execution %d, which planned it: %w", a.Step.Manager, core.ErrNotFound)
	}
	manager, err := managers[0].Row.record()
	if err != nil {
		return nil, err
	}
	a.Manager, a.Shared = *manager, []byte(managers[0].Shared)
	job, err := r.reads.Execution(ctx, a.Step.JobExecutionID)
	if err != nil {
		return nil, err
	}
	a.Job = *job
	if a.Step.First != 0 && a.Step.First != a.Step.ID {
		earlier, err := r.store.steps(ctx, r.store.sql(`name = ? AND id >= ? AND id < ?
			AND job_execution_id IN (SELECT id FROM {job_execution} WHERE instance_id = ?)`), a.Step.Name, a.Step.First, id, job.InstanceID)
		if err != nil {
			return nil, err
		}
		if len(earlier) > 0 {
			a.Earlier = &earlier[len(earlier)-1]
		}
	}
	return a, nil
}

// stopLost ends the partitions of a parked execution that have no owner or a lost one, if a stop
// was requested. Partitions that were given back after the request have no owner.
func (r *assignments) stopLost(ctx context.Context, id core.JobExecutionID, dead func(core.Owner) bool) error {
	var found []assignable
	err := r.store.scan(ctx, &found, `SELECT s.id, s.flow, s.status, s.owner, s.epoch, s.lease_until <= {now} AS expired, j.stop_requested
		FROM {step_execution} s JOIN {job_execution} j ON j.id = s.job_execution_id
		WHERE j.id = ? AND j.owner = '' AND j.stop_requested AND s.`+openStep+` AND s.manager_id IS NOT NULL AND NOT `+ofFinally+`
			AND (s.owner = '' OR s.lease_until IS NOT NULL) ORDER BY s.id`, id)
	if err != nil {
		return err
	}
	for _, c := range found {
		isDead := c.isDead(dead)
		if c.Row.Owner != "" && !c.Expired && !isDead {
			continue
		}
		if _, _, err := r.assign(ctx, c, isDead, ports.AssignRequest{}); err != nil {
			return fmt.Errorf("step execution %d: %w", c.Row.ID, err)
		}
	}
	return nil
}

// HeartbeatStep implements ports.Assignments with one guarded UPDATE, which touches no indexed
// column and leaves no audit row.
func (r *assignments) HeartbeatStep(ctx context.Context, ref ports.StepRef, lease time.Duration) (stop bool, err error) {
	var rows []struct{ StopRequested bool }
	err = r.store.scan(ctx, &rows, "UPDATE {step_execution} SET lease_until = {later} WHERE id = ? AND "+ownEpoch+" AND lease_until IS NOT NULL AND status IN ? RETURNING "+
		r.store.stopRequested()+" AS stop_requested", lease.Microseconds(), ref.ID, ref.Owner.String(), ref.Epoch, ref.Epoch, running())
	if err == nil && len(rows) == 0 {
		err = core.ErrLostOwner
	}
	if err != nil {
		return false, fmt.Errorf("heartbeat of step execution %d: %w", ref.ID, err)
	}
	return rows[0].StopRequested, nil
}

// ReleasePartition implements ports.Assignments.
func (r *assignments) ReleasePartition(ctx context.Context, ref ports.StepRef, refused string) error {
	m := stepMove(ref, ports.Executions().Move(ports.MoveRelease), actRelease)
	m.set("owner = ''")
	m.set("lease_until = NULL")
	m.set("error_text = ?", storable(refused))
	m.set("assigned_count = assigned_count - 1") // no attempt of the partition failed
	m.set("epoch = epoch + 1")
	_, err := r.recorded(ctx, ref.Owner.String(), func(ctx context.Context, l *ledger) error {
		answer, err := r.transition(ctx, m)
		if err != nil || answer != core.Applied {
			return err
		}
		if err := r.parkSteps(ctx, walkOf{ofBranch, int64(ref.ID)}, l); err != nil {
			return err
		}
		return r.announceStep(ctx, ref.ID)
	})
	return err
}
