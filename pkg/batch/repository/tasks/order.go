package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
)

// Tasks that wait for others of their group are WAITING. They move only in transactions that have
// locked the row of the group before the rows of its tasks: of two concurrent ends the second one
// sees the first.

type taskAfter struct {
	TaskID  task.ID
	NeedsID task.ID
	Needs   string
}

func (r *Repository) storeOrder(ctx context.Context, s task.Submission, order [][]int, ids []task.ID) error {
	var rows []taskAfter
	for i, needs := range order {
		for _, j := range needs {
			key := s.Tasks[j].Key
			if key == "" {
				key = s.Tasks[j].IdempotencyKey
			}
			rows = append(rows, taskAfter{TaskID: ids[i], NeedsID: ids[j], Needs: key})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return r.session(ctx).CreateInBatches(rows, insertBatch).Error
}

// lockOrdered locks the row of a task's group if tasks of the group wait for others, and reports
// whether they do.
func (r *Repository) lockOrdered(ctx context.Context, id task.ID) (bool, error) {
	var locked []task.GroupID
	err := r.scan(ctx, &locked, "SELECT id FROM {task_group} WHERE id = (SELECT group_id FROM {task} WHERE id = ?) AND ordered{lock}", id)
	return len(locked) > 0, err
}

// lockOverdue locks groups with tasks past their deadline if tasks of the groups wait for others,
// and reports whether there are any. The condition selects tasks of groups that are locked or need
// no lock.
func (r *Repository) lockOverdue(ctx context.Context, limit int) (ordered bool, inReach guard.Condition, err error) {
	var found, locked []task.GroupID
	err = r.scan(ctx, &found, `SELECT DISTINCT t.group_id FROM {task} t JOIN {task_group} g ON g.id = t.group_id
		WHERE t.deadline_at <= {now} AND t.state IN ('WAITING', 'PENDING', 'ASSIGNED', 'ORPHANED', 'RETRY_SCHEDULED') AND g.ordered LIMIT ?`, limit)
	if err == nil && len(found) > 0 {
		err = r.scan(ctx, &locked, "SELECT id FROM {task_group} WHERE id IN ? ORDER BY id{lock}", found)
	}
	inReach = guard.Condition{SQL: r.sql("NOT EXISTS (SELECT 1 FROM {task_group} own WHERE own.id = group_id AND own.ordered)")}
	if len(locked) > 0 {
		inReach.SQL += " OR group_id IN (" + strings.TrimPrefix(strings.Repeat(", ?", len(locked)), ", ") + ")"
		for _, id := range locked {
			inReach.Args = append(inReach.Args, id)
		}
	}
	return len(locked) > 0, inReach, err
}

// ready is the condition that all dependencies of a task have succeeded.
func (r *Repository) ready() string {
	return r.sql("NOT EXISTS (SELECT 1 FROM {task_after} a JOIN {task} n ON n.id = a.needs_id WHERE a.task_id = {task}.id AND n.state <> 'SUCCEEDED')")
}

// followers selects all tasks that wait for one (a ?), directly or indirectly.
func (r *Repository) followers() string {
	return r.sql(`WITH RECURSIVE follower(id) AS (SELECT task_id FROM {task_after} WHERE needs_id = ?
		UNION SELECT a.task_id FROM {task_after} a JOIN follower f ON a.needs_id = f.id) SELECT id FROM follower`)
}

// settle moves the tasks that wait for an ended task, and returns the deliveries of those that may
// begin.
func (r *Repository) settle(ctx context.Context, id task.ID, state task.State, actor string) ([]taskports.Delivery, error) {
	if state != task.Succeeded {
		return nil, r.cancelWaiting(ctx, id, actor)
	}
	var all []taskports.Delivery
	for {
		opened, err := r.deliver(ctx, guard.Bulk{
			Move: taskports.MoveOpen, Limit: bulk, Set: r.delivering(),
			Where: []guard.Condition{{SQL: r.sql("id IN (SELECT task_id FROM {task_after} WHERE needs_id = ?)"), Args: []any{id}}, {SQL: r.ready()}},
		})
		if all = append(all, opened...); err != nil || len(opened) < bulk {
			return all, err
		}
	}
}

// cancelWaiting cancels all tasks that wait for one that ended without success. A task past its
// deadline ends by the deadline instead.
func (r *Repository) cancelWaiting(ctx context.Context, id task.ID, actor string) error {
	var root taskRow
	if err := r.scan(ctx, &root, "SELECT id, state, spec, idempotency_key, last_error FROM {task} WHERE id = ?", id); err != nil {
		return err
	}
	reason := fmt.Sprintf("%s, for which it waits, is %s", root.name(), root.State)
	if root.LastError != "" {
		reason += ": " + root.LastError
	}
	waits := guard.Bulk{
		Move: taskports.MoveCancelWaiting, Limit: bulk, Set: r.canceling(reason),
		Where: []guard.Condition{{SQL: "id IN (" + r.followers() + ")", Args: []any{id}}, {SQL: r.sql("deadline_at IS NULL OR deadline_at > {now}")}},
	}
	return r.moveEach(ctx, waits, actor, reason, func([]int64) error { return nil })
}

func (row *taskRow) name() string {
	var spec task.Spec
	if err := json.Unmarshal([]byte(row.Spec), &spec); err != nil || spec.Key == "" {
		if row.IdempotencyKey == nil {
			return fmt.Sprintf("task %d", row.ID)
		}
		spec.Key = *row.IdempotencyKey
	}
	return fmt.Sprintf("task %d (%q)", row.ID, spec.Key)
}

// waitingAgain resets a task so that it waits like a new one.
func (r *Repository) waitingAgain() []guard.Assignment {
	return append(r.rerunning(), guard.Set("last_error", ""))
}

// inOrder makes a rerun wait for its task's dependencies, or refuses it if one of them has ended
// without success.
func (r *Repository) inOrder(ctx context.Context, again *guard.Request) error {
	var open []taskRow
	err := r.scan(ctx, &open, `SELECT n.id, n.state, n.spec, n.idempotency_key FROM {task_after} a JOIN {task} n ON n.id = a.needs_id
		WHERE a.task_id = ? AND n.state <> 'SUCCEEDED' ORDER BY n.id`, again.ID)
	if err != nil || len(open) == 0 {
		return err
	}
	again.Move, again.Set = taskports.MoveWaitAgain, r.waitingAgain()
	if i := slices.IndexFunc(open, func(row taskRow) bool { return row.State.IsOver() }); i >= 0 {
		again.Where = append(again.Where, guard.Condition{
			SQL: "1 = 0", Reason: fmt.Sprintf("%s, for which it waits, is %s: run that task again, and this one will wait for it", open[i].name(), open[i].State),
		})
	}
	return nil
}

// waitAgain makes tasks wait again that were canceled, or timed out, because they waited for a task
// that is run again. Tasks that also wait for another task that ended without success are left.
func (r *Repository) waitAgain(ctx context.Context, id task.ID, actor string) error {
	const over = "('FAILED', 'TIMED_OUT', 'CANCELED')"
	var ids []task.ID
	err := r.scan(ctx, &ids, "SELECT id FROM {task} WHERE id IN ("+r.followers()+") AND state IN "+over+`
		AND (last_move = ? OR last_move = ? AND state_before = ?) ORDER BY id{lock}`, id, taskports.MoveCancelWaiting, taskports.MoveDeadline, task.Waiting)
	if err != nil || len(ids) == 0 {
		return err
	}
	var ended []taskAfter
	err = r.scan(ctx, &ended, "SELECT a.task_id, a.needs_id FROM {task_after} a JOIN {task} n ON n.id = a.needs_id WHERE a.task_id IN ("+r.followers()+") AND n.state IN "+over, id)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(openable(ids, ended), insertBatch) {
		args := make([]any, len(batch))
		for i, id := range batch {
			args[i] = id
		}
		wait := guard.Bulk{Move: taskports.MoveWaitAgain, Limit: bulk, Set: r.waitingAgain(), Where: []guard.Condition{{SQL: "id IN (?" + strings.Repeat(", ?", len(batch)-1) + ")", Args: args}}}
		reason := fmt.Sprintf("task %d, for which it waits, is run again", id)
		if err := r.moveEach(ctx, wait, actor, reason, func([]int64) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// openable returns those of ids that wait for no ended task, except for openable ones of ids.
func openable(ids []task.ID, ended []taskAfter) []task.ID {
	blocks, followers, among := map[task.ID]int{}, map[task.ID][]task.ID{}, map[task.ID]bool{}
	for _, id := range ids {
		among[id] = true
	}
	for _, a := range ended {
		blocks[a.TaskID]++
		followers[a.NeedsID] = append(followers[a.NeedsID], a.TaskID)
	}
	var found []task.ID
	free := slices.DeleteFunc(slices.Clone(ids), func(id task.ID) bool { return blocks[id] > 0 })
	for ; len(free) > 0; free = free[1:] {
		found = append(found, free[0])
		for _, id := range followers[free[0]] {
			if blocks[id]--; blocks[id] == 0 && among[id] {
				free = append(free, id)
			}
		}
	}
	return found
}

// OpenLeft implements taskports.Maintenance.
func (r *Repository) OpenLeft(ctx context.Context, limit int) ([]taskports.Delivery, error) {
	var all []taskports.Delivery
	err := r.transact(ctx, func(ctx context.Context) error {
		var rows []taskRow
		var locked []task.GroupID
		err := r.scan(ctx, &rows, `SELECT DISTINCT n.id, n.group_id FROM {task} w JOIN {task_after} o ON o.task_id = w.id JOIN {task} n ON n.id = o.needs_id
			WHERE w.state = 'WAITING' AND (n.state IN ('FAILED', 'TIMED_OUT', 'CANCELED') OR n.state = 'SUCCEEDED' AND NOT EXISTS
			(SELECT 1 FROM {task_after} a JOIN {task} s ON s.id = a.needs_id WHERE a.task_id = w.id AND s.state <> 'SUCCEEDED')) ORDER BY n.id LIMIT ?`, limit)
		if err != nil || len(rows) == 0 {
			return err
		}
		groups := make([]task.GroupID, len(rows))
		for i, row := range rows {
			groups[i] = row.GroupID
		}
		if err := r.scan(ctx, &locked, "SELECT id FROM {task_group} WHERE id IN ? ORDER BY id{lock}", groups); err != nil {
			return err
		}
		for _, row := range rows {
			var state task.State
			if err := r.scan(ctx, &state, "SELECT state FROM {task} WHERE id = ?", row.ID); err != nil {
				return err
			}
			if !state.IsOver() {
				continue // it was run again before its group was locked
			}
			opened, err := r.settle(ctx, row.ID, state, "leader")
			if err != nil {
				return err
			}
			if all = append(all, opened...); state != task.Succeeded {
				if err := r.groupMoved(ctx, row.GroupID); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find tasks that wait for tasks that are over: %w", err)
	}
	return all, nil
}

const maxAwaited = 5

func (r *Repository) await(ctx context.Context, list []task.Task) error {
	at := map[task.ID]int{}
	var ids []task.ID
	for i, t := range list {
		if t.State == task.Waiting {
			at[t.ID], ids = i, append(ids, t.ID)
		}
	}
	for batch := range slices.Chunk(ids, insertBatch) {
		var rows []struct {
			TaskID, NeedsID task.ID
			Needs           string
			State           task.State
			Open            int
		}
		err := r.scan(ctx, &rows, `SELECT task_id, needs_id, needs, state, open FROM (SELECT a.task_id, a.needs_id, a.needs, n.state,
			count(*) OVER (PARTITION BY a.task_id) AS open, row_number() OVER (PARTITION BY a.task_id ORDER BY a.needs_id) AS nth
			FROM {task_after} a JOIN {task} n ON n.id = a.needs_id WHERE a.task_id IN ? AND n.state <> 'SUCCEEDED') AS awaited
			WHERE nth <= ? ORDER BY task_id, needs_id`, batch, maxAwaited)
		if err != nil {
			return fmt.Errorf("find the tasks that tasks wait for: %w", err)
		}
		for _, row := range rows {
			t := &list[at[row.TaskID]]
			t.OpenAfterCount = row.Open
			t.OpenAfter = append(t.OpenAfter, task.Awaited{ID: row.NeedsID, Key: row.Needs, State: row.State})
		}
	}
	return nil
}
