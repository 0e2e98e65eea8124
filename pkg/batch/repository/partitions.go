package repository

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const maxPartitionName = 200

// plans implements ports.PartitionPlans.
type plans struct {
	*jobGuard
	places *placements
}

// PlanPartitions implements ports.PartitionPlans in one transaction: first the guarded UPDATE of the
// job execution, as in StartStep, then the manager's, which counts the partitions, then the rows in
// batches, and one audit row for all of them. A plan with more than core.MaxPartitions, a repeated
// name or an invalid one is refused before the transaction.
func (r *plans) PlanPartitions(ctx context.Context, job ports.JobRef, plan ports.PartitionPlan) ([]core.StepExecution, error) {
	if err := checkPlan(plan.Parts); err != nil {
		return nil, fmt.Errorf("plan the partitions of step %s: %w", plan.Step, err)
	}
	if len(plan.Parts) == 0 {
		return nil, nil
	}
	rows, err := planRows(job, plan)
	if err != nil {
		return nil, fmt.Errorf("plan the partitions of step %s: %w", plan.Step, err)
	}
	v := verdict{answer: core.Applied}
	var there []core.StepExecution // of the same request, if its reply was lost
	err = r.store.transact(ctx, func(ctx context.Context) error {
		held, err := r.holdJob(ctx, job, len(plan.Parts), true) // the partitions check for a stop when they begin
		if err != nil {
			return err
		}
		if held == nil {
			v, err = r.refuseStep(ctx, job)
			return err
		}
		if plan.Again {
			if there, err = r.store.steps(ctx, "manager_id = ?", plan.Manager.ID); err != nil || len(there) > 0 {
				return err
			}
		}
		if err := r.holdManager(ctx, plan); err != nil {
			return err
		}
		if err := r.insertPlan(ctx, job, plan, held.JobName, rows); err != nil || !plan.ForWorkers {
			return err
		}
		if err := r.places.placeParts(ctx, rows, plan.Parts); err != nil {
			return err
		}
		return r.announceParts(ctx, rows, plan.Parts)
	})
	if err != nil {
		return nil, fmt.Errorf("plan the partitions of step %s of job execution %d: %w", plan.Step, job.ID, err)
	}
	planned := core.Move[core.Status]{To: core.StatusStarting}
	if v.err != nil {
		r.answered(ctx, jobMachine, int64(job.ID), planned, actPlan, v)
		return nil, fmt.Errorf("plan the partitions of step %s: %w", plan.Step, v.err)
	}
	if len(there) > 0 {
		return there, nil
	}
	records := make([]core.StepExecution, len(rows))
	for i, row := range rows {
		record, err := row.record()
		if err != nil {
			return nil, err
		}
		records[i] = *record
		r.answered(ctx, stepMachine, int64(row.ID), planned, actPlan, v)
	}
	return records, nil
}

func checkPlan(parts []core.Partition) error {
	if len(parts) > core.MaxPartitions {
		return fmt.Errorf("%d partitions are more than the allowed %d: each is a step execution; use fewer and larger ones", len(parts), core.MaxPartitions)
	}
	seen := make(map[string]bool, len(parts))
	for _, p := range parts {
		if err := checkPartitionName(p.Name); err != nil {
			return err
		}
		if seen[p.Name] {
			return fmt.Errorf("partition %q is listed twice", p.Name)
		}
		seen[p.Name] = true
	}
	return nil
}

func checkPartitionName(name string) error {
	bad := strings.IndexFunc(name, func(c rune) bool {
		return c == unicode.ReplacementChar || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-./", c)
	})
	if name == "" || len(name) > maxPartitionName || bad >= 0 {
		return fmt.Errorf("partition %q: a name has letters, digits and _ - . / , 1 to %d bytes", name, maxPartitionName)
	}
	return nil
}

// planRows returns the new rows, in STARTING. A partition's context comes from the partition, on a
// restart too; only position and counters continue from the previous attempt.
func planRows(job ports.JobRef, plan ports.PartitionPlan) ([]*stepExecution, error) {
	rows := make([]*stepExecution, len(plan.Parts))
	for i, part := range plan.Parts {
		var from *core.StepExecution
		if e, ok := plan.Earlier[part.Name]; ok {
			e.Context = nil
			from = &e
		}
		row, err := newStep(job, core.PartName(plan.Step, part.Name), from)
		if err != nil {
			return nil, fmt.Errorf("partition %s: %w", part.Name, err)
		}
		row.Status, row.LastMove, row.Flow = core.StatusStarting, "", part.Flow
		if plan.Manager.ID != 0 {
			row.ManagerID = &plan.Manager.ID
		}
		if plan.ForWorkers {
			row.Owner = ""
		}
		if part.Context != nil {
			text, err := part.Context.Encode()
			if err != nil {
				return nil, fmt.Errorf("partition %s: %w", part.Name, err)
			}
			row.Context = string(text)
		}
		rows[i] = row
	}
	return rows, nil
}

// holdManager locks the row of the step that plans, and counts the partitions. It returns
// ErrLostOwner if the guard finds no row.
func (r *plans) holdManager(ctx context.Context, plan ports.PartitionPlan) error {
	manager := plan.Manager
	if manager.ID == 0 {
		return nil
	}
	done := r.store.exec(ctx, "UPDATE {step_execution} SET open_parts = open_parts + ?, shared = ? WHERE id = ? AND "+ownEpoch+" AND status IN ?",
		len(plan.Parts), string(plan.Shared), manager.ID, manager.Owner.String(), manager.Epoch, manager.Epoch, stepStates())
	if done.Error == nil && done.RowsAffected == 0 {
		return fmt.Errorf("step execution %d: %w", manager.ID, core.ErrLostOwner)
	}
	return done.Error
}

// insertPlan writes the rows and sets their IDs. It is written without gorm, which would take
// seconds for a large plan.
func (r *plans) insertPlan(ctx context.Context, job ports.JobRef, plan ports.PartitionPlan, jobName string, rows []*stepExecution) error {
	byName := make(map[string]*stepExecution, len(rows))
	for batch := range slices.Chunk(rows, r.store.rowsAtOnce(len(rows[0].planned()))) {
		for _, row := range batch {
			row.JobName = jobName
			byName[row.Name] = row
		}
		if err := r.insertPlanned(ctx, batch, byName); err != nil {
			return err
		}
	}
	return r.store.session(ctx).Create(&audit{
		At: clock(0), Act: actPlan, Actor: job.Owner.String(), JobExecutionID: job.ID, StepExecutionID: plan.Manager.ID,
		ToStatus: core.StatusStarting, Epoch: job.Epoch, Detail: fmt.Sprintf("step %s, %d partitions", plan.Step, len(rows)),
	}).Error
}

func (r *plans) insertPlanned(ctx context.Context, batch []*stepExecution, byName map[string]*stepExecution) (err error) {
	var args []any
	values := make([]string, 0, len(batch))
	for _, row := range batch {
		fields := row.planned()
		literals := []string{"{now}", strconv.FormatInt(row.LastEpoch, 10), idSQL(row.ManagerID), idSQL(row.BranchID)}
		if row.Flow == "" {
			literals = append([]string{"''"}, literals...)
		}
		values = append(values, r.store.valuesRow(len(args), len(fields), literals...))
		args = append(args, fields...)
	}
	text := r.store.sql(`INSERT INTO {step_execution} (job_execution_id, job_name, name, status, owner, epoch, position, context,
		before_counts, first_id, flow, started_at, last_epoch, manager_id, branch_id)
		VALUES ` + strings.Join(values, ", ") + " RETURNING id, name, started_at")
	found, err := tx.ConnOf(ctx, r.store.db).QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() {
		if closed := found.Close(); err == nil {
			err = closed
		}
	}()
	for found.Next() {
		var id int64
		var name string
		var at instant
		if err := found.Scan(&id, &name, &at); err != nil {
			return err
		}
		byName[name].ID, byName[name].StartedAt = core.StepExecutionID(id), at
	}
	return found.Err()
}

// planned returns the values that differ from row to row of a plan. Only a branch has a log.
func (s *stepExecution) planned() []any {
	fields := []any{
		int64(s.JobExecutionID), s.JobName, s.Name, string(s.Status), s.Owner, s.Epoch,
		s.Position, s.Context, s.BeforeCounts, s.firstID(),
	}
	if s.Flow != "" {
		fields = append(fields, s.Flow)
	}
	return fields
}

// idSQL writes a column's value as a literal: it is the same in all rows of a plan.
func idSQL(id *core.StepExecutionID) string {
	if id == nil {
		return "NULL"
	}
	return strconv.FormatInt(int64(*id), 10)
}

func (s *stepExecution) firstID() any {
	if s.FirstID == nil {
		return nil
	}
	return int64(*s.FirstID)
}

// Partitions implements ports.PartitionPlans.
func (r *plans) Partitions(ctx context.Context, manager core.StepExecutionID) ([]core.StepExecution, error) {
	records, err := r.store.steps(ctx, "manager_id = ?", manager)
	if err != nil {
		return nil, fmt.Errorf("read the partitions of step execution %d: %w", manager, err)
	}
	return records, nil
}

// OpenParts implements ports.PartitionPlans.
func (r *plans) OpenParts(ctx context.Context, manager core.StepExecutionID) (int64, error) {
	var open []int64
	err := r.store.scan(ctx, &open, "SELECT open_parts FROM {step_execution} WHERE id = ?", manager)
	if err != nil {
		return 0, fmt.Errorf("count the partitions of step execution %d: %w", manager, err)
	}
	if len(open) == 0 {
		return 0, fmt.Errorf("count the partitions of step execution %d: %w", manager, core.ErrNotFound)
	}
	return open[0], nil
}

// StopPartitions implements ports.PartitionPlans.
func (r *plans) StopPartitions(ctx context.Context, job ports.JobRef) error {
	_, err := r.recorded(ctx, job.Owner.String(), func(ctx context.Context, l *ledger) error {
		held, err := r.holdJob(ctx, job, 0, true)
		if err == nil && held == nil {
			err = core.ErrLostOwner
		}
		if err != nil {
			return err
		}
		return r.stopUnassigned(ctx, job.ID, l)
	})
	if err != nil {
		return fmt.Errorf("stop the partitions of job execution %d: %w", job.ID, err)
	}
	return nil
}

// SaveStepPosition implements ports.PartitionPlans: one guarded UPDATE.
func (r *plans) SaveStepPosition(ctx context.Context, ref ports.StepRef, at item.Position) error {
	err := checkPosition(at)
	if err == nil {
		done := r.store.exec(ctx, "UPDATE {step_execution} SET position = ? WHERE id = ? AND owner = ? AND epoch = ? AND status IN ?",
			string(at), ref.ID, ref.Owner.String(), ref.Epoch, running())
		if err = done.Error; err == nil && done.RowsAffected == 0 {
			err = core.ErrLostOwner
		}
	}
	if err != nil {
		return fmt.Errorf("position of step execution %d: %w", ref.ID, err)
	}
	return nil
}

// BeginStep implements ports.PartitionPlans: one guarded UPDATE, and an audit row in its
// transaction. A step that has left STARTING, by any process, must not run: that is
// core.ErrLostOwner as well. After a stop request it returns core.ErrStopped (rule L13).
func (r *plans) BeginStep(ctx context.Context, ref ports.StepRef) error {
	return r.beginStep(ctx, ref, false)
}

// beginStep is BeginStep. again means that the reply to the same request was lost: then a step that
// this very transition began is a success.
func (r *plans) beginStep(ctx context.Context, ref ports.StepRef, again bool) error {
	m := stepMove(ref, ports.MoveTo(core.StatusStarted), actBeginStep)
	m.set("started_at = {now}")
	m.condition, m.conditionArgs, m.race = unlessStopped, []any{ref.ID, ref.ID}, true
	answer, err := r.transition(ctx, m)
	if err == nil && (answer == core.Applied || again && answer == core.Duplicate) {
		return nil
	}
	if found, mine := ports.FoundIn(err); mine && found == core.StatusStarting {
		return fmt.Errorf("start step execution %d: a stop of its execution was requested: %w", ref.ID, core.ErrStopped)
	}
	if _, mine := ports.FoundIn(err); err == nil || mine {
		err = fmt.Errorf("start step execution %d: it was started before: %w", ref.ID, core.ErrLostOwner)
	}
	return err
}
