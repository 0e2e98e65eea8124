package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// moves are the guarded transitions of executions.
type moves struct{ *endings }

// guard is the owner and epoch that a write is made for. Version and lease are not compared,
// because other processes may touch them (rule R3).
type guard struct {
	owner string
	epoch int64
}

type guardedMove struct {
	machine, table string
	job            string // SQL expression of the job execution's ID
	id             int64
	guard          *guard // nil means any process
	actor          string // the actor, if there is no guard
	reason         string // of steps that end with their job; '' means jobIsOver
	move           core.Move[core.Status]
	act, detail    string
	visits         []ports.FlowVisit // visits of the job's journal, stored with the transition
	sets           []string
	args           []any
	race           bool // others may make the same transition, and to be late is not an error
	// merge has changes of the job's context, or is nil.
	merge *core.ExecutionContext
	// condition is an additional one on columns of the row, or ''.
	condition     string
	conditionArgs []any
	part          bool // known to be a partition
	noted         bool // the UPDATE has stored the audit row
}

func jobMove(id core.JobExecutionID, move core.Move[core.Status], act string) *guardedMove {
	return &guardedMove{machine: jobMachine, table: "{job_execution}", job: "id", id: int64(id), act: act, move: move}
}

func ownJobMove(ref ports.JobRef, move core.Move[core.Status], act string) *guardedMove {
	m := jobMove(ref.ID, move, act)
	m.guard = &guard{ref.Owner.String(), ref.Epoch}
	return m
}

func stepMove(ref ports.StepRef, move core.Move[core.Status], act string) *guardedMove {
	return &guardedMove{
		machine: stepMachine, table: "{step_execution}", job: "job_execution_id", id: int64(ref.ID), act: act,
		move: move, guard: &guard{ref.Owner.String(), ref.Epoch},
	}
}

func (m *guardedMove) set(assignment string, args ...any) {
	m.sets = append(m.sets, assignment)
	m.args = append(m.args, args...)
}

func (m *guardedMove) outcome(exitCode, message, gate string) {
	if exitCode != "" {
		m.set("exit_code = ?", storable(exitCode))
	}
	if message != "" {
		m.set("error_text = ?", storable(message))
	}
	if gate != "" {
		m.set("gate = ?", storable(gate))
	}
}

func (m *guardedMove) context(c *core.ExecutionContext) error {
	text, write, err := encodeContext(c)
	if write && err == nil {
		m.set("context = ?", text)
	}
	return err
}

// by names the actor, and lets the move be made only in the epoch that the actor saw.
func (m *guardedMove) by(by ports.By) {
	m.actor, m.detail = by.Actor, by.Reason
	if by.Epoch != 0 {
		m.condition, m.conditionArgs = "epoch = ?", []any{by.Epoch}
	}
}

// moved returns a *ports.MovedError in place of refused if the execution has another epoch than the
// actor saw.
func (r *moves) moved(ctx context.Context, id core.JobExecutionID, by ports.By, refused error) error {
	if by.Epoch == 0 {
		return refused
	}
	var rows []jobExecution
	err := r.store.scan(ctx, &rows, "SELECT status, epoch FROM {job_execution} WHERE id = ?", id)
	if err != nil || len(rows) == 0 || rows[0].Epoch == by.Epoch {
		return errors.Join(refused, err)
	}
	return &ports.MovedError{Execution: id, Newest: id, Status: rows[0].Status, Epoch: rows[0].Epoch}
}

func (m *guardedMove) where() (string, []any) {
	switch {
	case m.guard == nil:
		return "id = ?", []any{m.id}
	case m.machine == stepMachine:
		return "id = ? AND " + ownEpoch, []any{m.id, m.guard.owner, m.guard.epoch, m.guard.epoch}
	}
	return "id = ? AND owner = ? AND epoch = ?", []any{m.id, m.guard.owner, m.guard.epoch}
}

func (m *guardedMove) refusal(current core.Status) *core.TransitionError {
	return &core.TransitionError{Machine: m.machine, ID: m.id, Move: m.move.Name, From: m.move.From, To: m.move.To, Current: current}
}

// transition makes the transition. Observers receive it when it commits (rule R7), and a rejection
// at once. A rejection does not roll back a transaction that ctx carries: the caller decides.
func (r *moves) transition(ctx context.Context, m *guardedMove) (core.Answer, error) {
	m.args, m.detail = r.store.masked(m.args), r.store.mask(m.detail)
	v, done, err := r.transitionAlone(ctx, m)
	if !done && err == nil {
		err = r.store.transact(ctx, func(ctx context.Context) error {
			err := r.mergeWith(ctx, m)
			if err == nil {
				v, err = r.apply(ctx, m)
			}
			return err
		})
	}
	if err != nil {
		return "", fmt.Errorf("%s %d: %s to %s: %w", m.machine, m.id, m.act, m.move.To, err)
	}
	v.race = m.race
	r.answered(ctx, m.machine, m.id, m.move, m.act, v)
	ended := ports.Executions().Move(ports.MoveEndWithJob)
	for _, step := range v.failed {
		r.answered(ctx, stepMachine, int64(step.StepExecutionID), ended, step.Act, verdict{answer: core.Applied, current: step.FromStatus})
	}
	return v.answer, v.err
}

// transitionAlone makes a transition with one statement if nothing else has to be done.
func (r *moves) transitionAlone(ctx context.Context, m *guardedMove) (v verdict, done bool, err error) {
	hasMore := m.merge != nil && m.merge.Changed() || len(m.visits) > 0 || m.part || m.move.Name == ports.MoveRequestStop
	if hasMore || len(m.move.From) == 0 || !r.store.alone(ctx) {
		return v, false, nil
	}
	alone, nothingElse := *m, "true"
	switch {
	case !m.move.To.IsOver():
	case m.machine == stepMachine:
		nothingElse = "manager_id IS NULL"
	default: // the row is the newest one, unlike the steps: its count shows whether all of them are seen
		nothingElse = r.store.sql(`parent_id IS NULL AND step_count = (SELECT count(*) FROM {step_execution} s WHERE s.job_execution_id = {job_execution}.id)
			AND NOT EXISTS (SELECT 1 FROM {step_execution} s WHERE s.job_execution_id = {job_execution}.id AND s.` + openStep + ")")
	}
	alone.condition = cmp.Or(m.condition, "true") + " AND " + nothingElse
	moved, _, err := r.update(ctx, &alone)
	switch {
	case mustRepeat(err):
		return v, false, nil
	case moved == nil:
		return v, false, err
	}
	return verdict{answer: core.Applied, current: moved.FromStatus}, true, nil
}

func (r *moves) mergeWith(ctx context.Context, m *guardedMove) error {
	if m.merge == nil || !m.merge.Changed() {
		return nil
	}
	condition, args := "id = ?", []any{m.id}
	if m.move.To.IsOver() { // in the order of update: the parent's row before the child's
		first, bound, err := r.parentFirst(ctx, m.id)
		if err != nil {
			return err
		}
		condition, args = condition+first, append(args, bound...)
	}
	id, text, err := r.mergedContext(ctx, m.merge, condition, args...)
	if err == nil && id != 0 {
		m.set("context = ?", text)
	}
	return err
}

// apply updates under the guard. If the update finds no row, apply reads the row and classifies. It
// updates again if the row has just moved to a status from which the transition is allowed.
// Statuses only move forward within an epoch, so the loop ends.
func (r *moves) apply(ctx context.Context, m *guardedMove) (verdict, error) {
	machine := ports.Executions()
	for range len(machine.Moves()) {
		if len(m.move.From) > 0 {
			moved, row, err := r.update(ctx, m)
			if err != nil {
				return verdict{}, err
			}
			if moved != nil {
				return r.applied(ctx, m, *moved, row)
			}
		}
		v, err := r.classify(ctx, m, machine)
		if err == nil && v.answer == core.Applied && m.condition != "" {
			refused := m.refusal(v.current)
			refused.Reason = "not now"
			v = verdict{answer: core.Rejected, current: v.current, err: refused}
		}
		if err != nil || v.answer != core.Applied {
			return v, err
		}
	}
	return verdict{}, errors.New("the row changes faster than it can be updated")
}

// applied completes an applied transition: it counts ended partitions, stores visits, ends the
// steps of an ended job, and writes the audit.
func (r *moves) applied(ctx context.Context, m *guardedMove, moved audit, row movedRow) (verdict, error) {
	v := verdict{answer: core.Applied, current: moved.FromStatus}
	if m.machine == stepMachine && m.move.To.IsOver() && !moved.FromStatus.IsOver() {
		row.Step.ID = core.StepExecutionID(m.id)
		if err := r.countEnded(ctx, []stepExecution{row.Step}); err != nil {
			return v, err
		}
	}
	if err := r.store.storeVisits(ctx, moved.JobExecutionID, m.visits); err != nil {
		return v, err
	}
	if m.move.Name == ports.MoveRequestStop && moved.FromStatus == core.StatusParked {
		_, err := r.recorded(ctx, moved.Actor, func(ctx context.Context, l *ledger) error {
			if err := r.stopUnassigned(ctx, moved.JobExecutionID, l); err != nil {
				return err
			}
			if err := r.stopUnbegun(ctx, moved.JobExecutionID, l); err != nil {
				return err
			}
			return r.announceStop(ctx, moved.JobExecutionID)
		})
		if err != nil {
			return v, err
		}
	}
	if m.machine == jobMachine && m.move.To.IsOver() {
		if err := r.childEnded(ctx, row.ParentID); err != nil {
			return v, err
		}
		reason := cmp.Or(m.reason, jobIsOver)
		steps, err := r.failSteps(ctx, moved.JobExecutionID, reason)
		if err != nil {
			return v, err
		}
		for _, s := range steps {
			v.failed = append(v.failed, audit{
				At: clock(0), Act: m.act, Actor: moved.Actor, JobExecutionID: moved.JobExecutionID, StepExecutionID: s.ID,
				FromStatus: s.StatusBefore, ToStatus: core.StatusFailed, Epoch: s.Epoch, Detail: reason,
			})
		}
	}
	audits := v.failed
	if !m.noted {
		audits = append([]audit{moved}, audits...)
	}
	if len(audits) == 0 {
		return v, nil
	}
	return v, r.store.session(ctx).CreateInBatches(&audits, auditBatch).Error
}

// movedRow is the row that an UPDATE returns: a step with its manager, or a job with its parent.
type movedRow struct {
	Step     stepExecution `gorm:"embedded"` // the columns that both tables have
	ParentID *core.JobExecutionID
}

// lockedFirst locks the rows that come before the one that moves.
func (r *moves) lockedFirst(ctx context.Context, m *guardedMove) (condition string, args []any, err error) {
	switch {
	case m.machine == stepMachine && m.move.To.IsOver():
		return r.managerFirst(ctx, m.id)
	case m.machine == jobMachine && (m.move.To.IsOver() || m.move.Name == ports.MoveRequestStop):
		return r.parentFirst(ctx, m.id)
	}
	return "", nil, nil
}

// update is the guarded UPDATE. It returns the audit row of the transition and the moved row, or
// nil if the UPDATE found no row. The row records the transition and the epoch in which it was
// made.
func (r *moves) update(ctx context.Context, m *guardedMove) (*audit, movedRow, error) {
	where, guarded := m.where()
	sets := append([]string{"status_before = status", "status = ?", "last_move = ?", "last_epoch = epoch"}, m.sets...)
	returning := m.job + " AS job_execution_id, status_before, epoch"
	args := slices.Concat([]any{m.move.To, m.move.Name}, m.args, guarded, []any{m.move.From})
	where += " AND status IN ?"
	if m.condition != "" {
		where, args = where+" AND "+m.condition, append(args, m.conditionArgs...)
	}
	if m.machine == stepMachine {
		returning += ", manager_id, flow"
	}
	if m.machine == jobMachine {
		returning += ", parent_id"
	}
	first, bound, err := r.lockedFirst(ctx, m)
	if err != nil {
		return nil, movedRow{}, err
	}
	where, args = where+first, append(args, bound...)
	done := &audit{At: clock(0), Act: m.act, Actor: m.actor, ToStatus: m.move.To, Detail: storable(m.detail)}
	if m.guard != nil {
		done.Actor = m.guard.owner
	}
	switch m.act {
	case actRequestStop:
		done.Verb, done.Person = ports.VerbStop, m.actor
	case actAbandon:
		done.Verb, done.Person = ports.VerbAbandon, m.actor
	}
	if m.machine == stepMachine {
		done.StepExecutionID = core.StepExecutionID(m.id)
	}
	var rows []movedRow
	text := "UPDATE " + m.table + " SET " + strings.Join(sets, ", ") + " WHERE " + where + " RETURNING " + returning
	if m.noted = r.store.hasAtOnce(); m.noted {
		once := &atOnce{store: r.store}
		once.add("moved", text, args...)
		once.insert("noted", done, "moved", map[string]string{"job_execution_id": "job_execution_id", "from_status": "status_before", "epoch": "epoch"}, "")
		err = gormtx.Scan(once.statement(ctx, "SELECT * FROM moved"), &rows)
	} else {
		err = r.store.scan(ctx, &rows, text, args...)
	}
	if err != nil || len(rows) == 0 {
		return nil, movedRow{}, err
	}
	step := rows[0].Step
	done.JobExecutionID, done.FromStatus, done.Epoch = step.JobExecutionID, step.StatusBefore, step.Epoch
	return done, rows[0], nil
}

// classify returns why the guarded UPDATE found no row. The row itself shows whether this very
// transition was made before.
func (r *moves) classify(ctx context.Context, m *guardedMove, machine core.Machine[core.Status]) (verdict, error) {
	var rows []stepExecution // the columns that both tables have
	err := r.store.scan(ctx, &rows, "SELECT status, owner, epoch, last_move, last_epoch FROM "+m.table+" WHERE id = ?", m.id)
	if err != nil {
		return verdict{}, err
	}
	refused := m.refusal("")
	if len(rows) == 0 {
		return verdict{answer: core.Rejected, err: fmt.Errorf("%w: %w", refused, core.ErrNotFound)}, nil
	}
	row := rows[0]
	refused.Current, refused.Epoch, refused.Last = row.Status, row.Epoch, core.Mark{Move: row.LastMove, Epoch: row.LastEpoch}
	if m.guard != nil && !row.isOf(m.guard) {
		return verdict{answer: core.Rejected, current: row.Status, err: fmt.Errorf("%w: %w", refused, core.ErrLostOwner)}, nil
	}
	v := verdict{answer: machine.Answer(m.move.Name, row.Epoch, row.Status, refused.Last), current: row.Status}
	if v.answer == core.Rejected {
		v.err = refused
	}
	return v, nil
}

// isOf reports whether the row belongs to the guard's owner in its epoch, or in one that this owner
// raised without knowing.
func (s *stepExecution) isOf(g *guard) bool {
	own := s.Epoch == g.epoch || s.LastMove == ports.MoveReclaim && s.LastEpoch == g.epoch
	return s.Owner == g.owner && own
}

// walkOf is a walk with steps that move together: a job's walk, or the walk of a branch by a
// worker.
type walkOf struct {
	column string
	id     int64
}

// condition leaves the steps of branches that workers walk out of the steps of a job.
func (w walkOf) condition() string {
	if w.column == ofJob {
		return " AND branch_id IS NULL"
	}
	return ""
}

// parkSteps parks the unfinished steps of a job's own walk, or of a branch.
func (r *moves) parkSteps(ctx context.Context, of walkOf, l *ledger) error {
	park := ports.Executions().Move(ports.MovePark)
	var steps []stepExecution
	err := r.store.scan(ctx, &steps, `UPDATE {step_execution}
		SET status_before = status, status = ?, last_move = ?, last_epoch = epoch, owner = ''
		WHERE `+of.column+` = ? AND `+openStep+` AND status IN ? AND manager_id IS NULL`+of.condition()+`
		RETURNING id, job_execution_id, status_before, epoch`, park.To, park.Name, of.id, park.From)
	l.noteSteps(steps, actPark, park)
	return err
}

// resumeSteps makes an owner the owner of the parked steps of a walk, and returns their guards.
func (r *moves) resumeSteps(ctx context.Context, of walkOf, owner core.Owner, l *ledger) ([]ports.StepRef, error) {
	resume := ports.Executions().Move(ports.MoveResume)
	var steps []stepExecution
	err := r.store.scan(ctx, &steps, `UPDATE {step_execution}
		SET status_before = status, status = ?, last_move = ?, last_epoch = epoch, epoch = epoch + 1, owner = ?
		WHERE `+of.column+` = ? AND `+openStep+` AND status = ? AND owner = '' AND manager_id IS NULL`+of.condition()+`
		RETURNING id, job_execution_id, status_before, epoch`, resume.To, resume.Name, owner.String(), of.id, core.StatusParked)
	l.noteSteps(steps, actResume, resume)
	refs := make([]ports.StepRef, len(steps))
	for i, s := range steps {
		refs[i] = ports.StepRef{ID: s.ID, Owner: owner, Epoch: s.Epoch}
	}
	return refs, err
}
