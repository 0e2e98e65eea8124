package tasks

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
)

// order moves the tasks that wait for others of their group, or until fewer of its tasks are begun: they are
// WAITING. They move only in transactions that have locked the row of the group before the rows of its tasks: of
// two concurrent ends the second one sees the first.
type order struct{ *moves }

// lockOrdered locks the row of a task's group if tasks of the group wait for others, and reports
// whether they do.
func (r order) lockOrdered(ctx context.Context, id task.ID) (bool, error) {
	var locked []task.GroupID
	err := r.scan(ctx, &locked, "SELECT id FROM {task_group} WHERE id = (SELECT group_id FROM {task} WHERE id = ?) AND ordered{lock}", id)
	return len(locked) > 0, err
}

// lockOverdue locks groups with tasks past their deadline if tasks of the groups wait for others,
// and reports whether there are any. The condition selects tasks of groups that are locked or need
// no lock.
func (r order) lockOverdue(ctx context.Context, limit int) (ordered bool, inReach guard.Condition, err error) {
	var found, locked []task.GroupID
	err = r.scan(ctx, &found, `SELECT DISTINCT t.group_id FROM {task} t JOIN {task_group} g ON g.id = t.group_id
		WHERE t.deadline_at <= {now} AND t.state IN ('WAITING', 'PENDING', 'ASSIGNED', 'ORPHANED', 'RETRY_SCHEDULED') AND g.ordered LIMIT ?`, limit)
	if err == nil && len(found) > 0 {
		err = r.scan(ctx, &locked, "SELECT id FROM {task_group} WHERE id IN ? ORDER BY id{lock}", found)
	}
	inReach = guard.Condition{SQL: r.sql("NOT EXISTS (SELECT 1 FROM {task_group} own WHERE own.id = group_id AND own.ordered)")}
	if len(locked) > 0 {
		known := in("group_id", locked)
		inReach.SQL, inReach.Args = inReach.SQL+" OR "+known.SQL, known.Args
	}
	return len(locked) > 0, inReach, err
}

// settle moves the tasks that wait for an ended task, and returns the deliveries of those that may
// begin.
func (r order) settle(ctx context.Context, id task.ID, state task.State, actor string) ([]taskports.Delivery, error) {
	if state != task.Succeeded {
		if err := r.cancelWaiting(ctx, id, actor); err != nil {
			return nil, err
		}
	}
	var group taskGroup
	err := r.scan(ctx, &group, "SELECT id, budget FROM {task_group} WHERE id = (SELECT group_id FROM {task} WHERE id = ?)", id)
	if err != nil {
		return nil, err
	}
	opened, bounded, err := r.openRoom(ctx, &group)
	if err != nil || bounded || state != task.Succeeded {
		return opened, err
	}
	return r.open(ctx, math.MaxInt, guard.Condition{SQL: r.sql("id IN (SELECT task_id FROM {task_after} WHERE needs_id = ?)"), Args: []any{id}})
}

// room is how many tasks of a group may be opened, if they are bounded. The group is locked.
func (r order) room(ctx context.Context, group *taskGroup) (room int, bounded bool, err error) {
	bounds, err := boundsOf(group.ID, group.Budget)
	if err != nil || bounds.Parallel == 0 {
		return 0, false, err
	}
	begun := 0
	err = r.scan(ctx, &begun, "SELECT count(*) FROM {task} WHERE group_id = ? AND state IN ('PENDING', 'ASSIGNED', 'RUNNING', 'RETRY_SCHEDULED', 'ORPHANED')", group.ID)
	return max(bounds.Parallel-begun, 0), true, err
}

// openRoom opens tasks of a locked group in which fewer are begun than may be.
func (r order) openRoom(ctx context.Context, group *taskGroup) (opened []taskports.Delivery, bounded bool, err error) {
	room, bounded, err := r.room(ctx, group)
	if err == nil && room > 0 {
		opened, err = r.open(ctx, room, guard.Condition{SQL: "group_id = ?", Args: []any{group.ID}})
	}
	return opened, bounded, err
}

// open delivers at most so many ready tasks, in the order of the submission.
func (r order) open(ctx context.Context, most int, among guard.Condition) (all []taskports.Delivery, err error) {
	for len(all) < most {
		limit := min(bulk, most-len(all))
		opened, err := r.deliver(ctx, guard.Bulk{
			Move: taskports.MoveOpen, OrderBy: "ordinal", Limit: limit, Set: r.delivering(), Where: []guard.Condition{among, {SQL: r.ready()}},
		})
		if all = append(all, opened...); err != nil || len(opened) < limit {
			return all, err
		}
	}
	return all, nil
}

// cancelWaiting cancels all tasks that wait for one that ended without success. A task past its
// deadline ends by the deadline instead.
func (r order) cancelWaiting(ctx context.Context, id task.ID, actor string) error {
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
	return r.moveEach(ctx, waits, actor, reason, nil)
}

// inOrder makes a rerun wait for its task's dependencies, or until fewer tasks of the group are begun, or refuses it
// if a dependency has ended without success.
func (r order) inOrder(ctx context.Context, group *taskGroup, again *guard.Request) error {
	var open []taskRow
	err := r.scan(ctx, &open, `SELECT n.id, n.state, n.spec, n.idempotency_key FROM {task_after} a JOIN {task} n ON n.id = a.needs_id
		WHERE a.task_id = ? AND n.state <> 'SUCCEEDED' ORDER BY n.id`, again.ID)
	if err != nil {
		return err
	}
	room, bounded, err := r.room(ctx, group)
	if err != nil || len(open) == 0 && (!bounded || room > 0) {
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
func (r order) waitAgain(ctx context.Context, id task.ID, actor string) error {
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
		wait := guard.Bulk{Move: taskports.MoveWaitAgain, Limit: bulk, Set: r.waitingAgain(), Where: []guard.Condition{in("id", batch)}}
		reason := fmt.Sprintf("task %d, for which it waits, is run again", id)
		if err := r.moveEach(ctx, wait, actor, reason, nil); err != nil {
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

// waitingAgain resets a task so that it waits like a new one.
func (r order) waitingAgain() []guard.Assignment {
	return append(r.rerunning(), guard.Set("last_error", ""))
}

// ready is the condition that all dependencies of a task have succeeded.
func (r order) ready() string {
	return r.sql("NOT EXISTS (SELECT 1 FROM {task_after} a JOIN {task} n ON n.id = a.needs_id WHERE a.task_id = {task}.id AND n.state <> 'SUCCEEDED')")
}

// followers selects all tasks that wait for one (a ?), directly or indirectly.
func (r order) followers() string {
	return r.sql(`WITH RECURSIVE follower(id) AS (SELECT task_id FROM {task_after} WHERE needs_id = ?
		UNION SELECT a.task_id FROM {task_after} a JOIN follower f ON a.needs_id = f.id) SELECT id FROM follower`)
}
