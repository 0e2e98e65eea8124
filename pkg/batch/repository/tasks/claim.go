package tasks

import (
	"context"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
)

// executions implements taskports.Executions.
type executions struct{ endings }

func (r executions) Claim(ctx context.Context, d taskports.Delivery, by taskports.Claimant) (*taskports.Claimed, core.Answer, error) {
	return r.begin(ctx, d, by, guard.Request{
		Move: taskports.MoveClaim, Race: true, Where: append(r.claimable(), anyWorker()), Set: append(append(r.leasing(by), r.assigning(by.Worker)...), r.starting()...),
	})
}

func (r executions) Start(ctx context.Context, d taskports.Delivery, by taskports.Claimant) (*taskports.Claimed, core.Answer, error) {
	return r.begin(ctx, d, by, guard.Request{
		Move: taskports.MoveStart, Race: true, Where: append(r.claimable(), ownedBy(by.Worker)), Set: append(r.leasing(by), r.starting()...),
	})
}

// anyWorker is the condition that a task has no placement: the leader assigns those that have one.
func anyWorker() guard.Condition {
	return guard.Condition{SQL: "placement = ''", Reason: "the leader assigns it to a worker that its placement allows"}
}

func (r executions) leasing(by taskports.Claimant) []guard.Assignment {
	return []guard.Assignment{
		r.later("lease_until", by.Lease), guard.SetSQL("confirm_until", r.confirming(), by.Lease.Microseconds(), by.Grace.Microseconds()),
		guard.Set("continuation_state", notConfirming), r.now("updated_at"),
	}
}

// confirming is the time until which a worker may confirm that it continues: its lease, plus the
// grace that it knows or the one that is set now, whichever is greater.
func (r executions) confirming() string {
	return strings.Replace(r.sql("{later}"), "?", r.sql("CAST(? AS bigint) + {greatest}(CAST(? AS bigint), {grace})"), 1)
}

// starting counts the attempt and records the current leader's epoch.
func (r executions) starting() []guard.Assignment {
	return []guard.Assignment{
		guard.SetSQL("attempts", "attempts + 1"), guard.SetSQL("tries", "tries + 1"),
		guard.SetSQL("leader_epoch", r.sql("COALESCE((SELECT epoch FROM {leader}), 0)")),
	}
}

// claimed is a task with the settings of its group.
type claimed struct {
	Row              taskRow `gorm:"embedded"`
	Decider          string
	MaxTotalAttempts int64
	Stalled          bool
	Ordered          bool
	StepExecutionID  *core.StepExecutionID
	Now              gormtx.Instant
}

// begin makes the transition that starts an execution, and begins the attempt in the same
// transaction.
func (r executions) begin(ctx context.Context, d taskports.Delivery, by taskports.Claimant, move guard.Request) (*taskports.Claimed, core.Answer, error) {
	move.ID, move.Epoch = int64(d.ID), d.Epoch
	if c, err := r.beginAtOnce(ctx, by, move); err != nil || c != nil {
		return c, core.Applied, named(d.ID, err)
	}
	if err := r.decides(ctx, d.ID, by); err != nil {
		return nil, core.Rejected, named(d.ID, err)
	}
	var result *taskports.Claimed
	var moved guard.Result[task.State]
	var refused error
	err := r.transact(ctx, func(ctx context.Context) (err error) {
		if err := r.lockBounded(ctx, d.ID); err != nil {
			return err
		}
		moved, refused = r.tasks.Move(ctx, move)
		if moved.Answer == core.Duplicate && moved.State == task.Running {
			result, err = r.claimedBefore(ctx, d, by)
			return err
		}
		if moved.Answer != core.Applied {
			return nil
		}
		var row claimed
		if err = r.scan(ctx, &row, selectClaimed+" WHERE t.id = ?", d.ID); err != nil {
			return err
		}
		over, err := r.isOverBudget(ctx, &row, by)
		if err != nil || over {
			return err
		}
		result, err = r.attempt(ctx, &row, by)
		return err
	})
	if err != nil {
		return nil, "", named(d.ID, err)
	}
	return result, moved.Answer, refused
}

// decides returns a *taskports.NoDeciderError if the task's group names a decider that the worker lacks:
// another one would decide about the attempt.
func (r executions) decides(ctx context.Context, id task.ID, by taskports.Claimant) error {
	var names []string
	err := r.scan(ctx, &names, "SELECT decider FROM {task_group} WHERE id = (SELECT group_id FROM {task} WHERE id = ?)", id)
	if err != nil || len(names) == 0 || by.Decides(names[0]) {
		return err
	}
	return &taskports.NoDeciderError{Decider: names[0]}
}

// beginAtOnce is begin in one statement, for a task with a group that has no bound on its total
// attempts, has made progress and has a decider that the worker knows. It returns nil if begin has
// to find out why not.
func (r executions) beginAtOnce(ctx context.Context, by taskports.Claimant, move guard.Request) (*taskports.Claimed, error) {
	var row claimed
	var attempt taskports.AttemptID
	known, names := decidable("own.decider", by.Deciders)
	move.Where = append(move.Where, guard.Condition{
		SQL: r.sql("EXISTS (SELECT 1 FROM {task_group} own WHERE own.id = group_id AND own.max_total_attempts = 0 AND NOT own.stalled AND " + known + ")"), Args: names,
	})
	move.With = []guard.Step{{
		SQL: r.sql(`INSERT INTO {task_attempt} (task_id, group_id, number, epoch, state, worker, started_at)
			SELECT id, group_id, tries, epoch, ?, worker, {now} FROM moved RETURNING id`),
		Args: []any{taskports.AttemptRunning}, Into: []any{&attempt},
	}, {
		SQL: r.sql(`SELECT m.id, m.group_id, m.type, m.priority, m.payload, m.spec, m.timeout_us, m.state, m.epoch, m.version, m.attempt, m.attempts,
			m.worker, m.continuation_state, m.next_run_at, m.deadline_at, m.last_error, m.created_at, m.updated_at, g.decider, g.step_execution_id, g.ordered, {now}
			FROM moved m JOIN {task_group} g ON g.id = m.group_id`),
		Into: []any{
			&row.Row.ID, &row.Row.GroupID, &row.Row.Type, &row.Row.Priority, &row.Row.Payload, &row.Row.Spec, &row.Row.TimeoutUs, &row.Row.State,
			&row.Row.Epoch, &row.Row.Version, &row.Row.Attempt, &row.Row.Attempts, &row.Row.Worker, &row.Row.ContinuationState, &row.Row.NextRunAt,
			&row.Row.DeadlineAt, &row.Row.LastError, &row.Row.CreatedAt, &row.Row.UpdatedAt, &row.Decider, &row.StepExecutionID, &row.Ordered, &row.Now,
		},
	}}
	_, made, err := r.tasks.Try(ctx, move)
	if err != nil || !made {
		return nil, err
	}
	return row.given(attempt, by)
}

// claimedBefore returns the task that the same worker has claimed in the epoch and executes,
// because the reply was lost; else nil.
func (r executions) claimedBefore(ctx context.Context, d taskports.Delivery, by taskports.Claimant) (*taskports.Claimed, error) {
	var rows []claimed
	err := r.scan(ctx, &rows, selectClaimed+" WHERE t.id = ? AND t.epoch = ? AND t.worker = ? AND t.state = ?", d.ID, d.Epoch, by.Worker, task.Running)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	var attempts []taskAttempt
	err = r.scan(ctx, &attempts, "SELECT * FROM {task_attempt} WHERE task_id = ? AND epoch = ? AND worker = ? AND state = ?", d.ID, d.Epoch, by.Worker, taskports.AttemptRunning)
	if err != nil || len(attempts) == 0 {
		return nil, err
	}
	return rows[0].given(attempts[0].ID, by)
}

const selectClaimed = `SELECT t.*, g.decider, g.max_total_attempts, g.stalled, g.ordered, g.step_execution_id, {now} AS now FROM {task} t JOIN {task_group} g ON g.id = t.group_id`

// given returns the worker's view of a task with a begun attempt.
func (row *claimed) given(attempt taskports.AttemptID, by taskports.Claimant) (*taskports.Claimed, error) {
	record, err := row.Row.record()
	if err != nil {
		return nil, err
	}
	c := &taskports.Claimed{
		Task: *record, Decider: row.Decider, Ref: taskports.Ref{ID: row.Row.ID, Attempt: attempt, Worker: by.Worker, Epoch: row.Row.Epoch, Ordered: row.Ordered},
	}
	if row.StepExecutionID != nil || row.Ordered {
		c.Ref.Group = row.Row.GroupID
	}
	if !row.Row.DeadlineAt.IsZero() {
		c.Deadline = max(row.Row.DeadlineAt.Sub(row.Now.Time), time.Microsecond)
	}
	return c, nil
}

func (r executions) attempt(ctx context.Context, row *claimed, by taskports.Claimant) (*taskports.Claimed, error) {
	attempt := taskAttempt{
		TaskID: row.Row.ID, GroupID: row.Row.GroupID, Number: row.Row.Tries, Epoch: row.Row.Epoch, State: taskports.AttemptRunning, Worker: by.Worker, StartedAt: gormtx.Clock(0),
	}
	if err := r.session(ctx).Create(&attempt).Error; err != nil {
		return nil, err
	}
	return row.given(attempt.ID, by)
}

// lockBounded locks the row of the task's group if the group bounds its total attempts or has made
// no progress, so that two claims do not both take the last attempt. Groups are locked before
// tasks.
func (r executions) lockBounded(ctx context.Context, id task.ID) error {
	var locked []task.GroupID
	return r.scan(ctx, &locked, "SELECT id FROM {task_group} WHERE id = (SELECT group_id FROM {task} WHERE id = ?) AND (max_total_attempts > 0 OR stalled){lock}", id)
}

// isOverBudget ends a task if its group has used all its attempts, or too many of them without
// progress. The group's row is locked. A group that has made progress since is not stalled any
// more.
func (r executions) isOverBudget(ctx context.Context, row *claimed, by taskports.Claimant) (bool, error) {
	if row.MaxTotalAttempts == 0 && !row.Stalled {
		return false, nil
	}
	group, err := r.groups.lockGroup(ctx, row.Row.GroupID)
	if err != nil {
		return false, err
	}
	budget, err := budgetOf(group.ID, group.Budget)
	if err != nil {
		return false, err
	}
	spent, err := r.groups.spentBy(ctx, group.ID, group.CountedAfter, budget)
	if err != nil {
		return false, err
	}
	spent.Attempts = row.Row.Attempts - 1
	why := budget.Exhausted(spent)
	if why == "" {
		if !group.Stalled {
			return false, nil
		}
		_, err := r.exec(ctx, "UPDATE {task_group} SET stalled = FALSE WHERE id = ?", group.ID)
		return false, err
	}
	_, err = r.tasks.Move(ctx, guard.Request{
		ID: int64(row.Row.ID), Move: taskports.MoveFail, Epoch: row.Row.Epoch, Trigger: "budget", Where: []guard.Condition{ownedBy(by.Worker)},
		Set: []guard.Assignment{guard.Set("last_error", why), guard.SetSQL("attempts", "attempts - 1"), guard.SetSQL("tries", "tries - 1"), r.now("updated_at"), guard.SetSQL("lease_until", "NULL")},
	})
	if err == nil {
		err = r.decided(ctx, decision{task: row.Row.ID, trigger: "budget", policy: "budget", decision: task.MarkDead(why), spent: spent})
	}
	if err == nil && row.Ordered {
		err = r.order.cancelWaiting(ctx, row.Row.ID, by.Worker)
	}
	if err == nil {
		err = r.waiters.groupMoved(ctx, row.Row.GroupID)
	}
	return true, err
}
