package tasks

import (
	"context"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
)

// placements implements ports.Places.
type placements struct{ *moves }

type placedRow struct {
	ID, Epoch                            int64
	Type, State, Worker, Decider, Wanted string
	Attempt, Priority                    int
	CreatedAt                            gormtx.Instant
}

const selectPlaced = `SELECT t.id, t.epoch, t.type, t.state, t.worker, g.decider, t.placement AS wanted, t.attempt, t.priority, t.created_at
	FROM {task} t JOIN {task_group} g ON g.id = t.group_id `

// placedClasses begins a statement about the classes of tasks that wait to be assigned. It reads one entry of an index for
// each class.
const (
	waitsPlaced   = "t.state IN ('PENDING', 'ORPHANED') AND t.placement <> ''"
	nextPlaced    = " FROM {task} t WHERE " + waitsPlaced + " AND (t.placement, t.type) > (classes.placement, classes.type) ORDER BY t.placement, t.type LIMIT 1)"
	placedClasses = `WITH RECURSIVE classes(placement, type) AS (
		SELECT * FROM (SELECT t.placement, t.type FROM {task} t WHERE ` + waitsPlaced + ` ORDER BY t.placement, t.type LIMIT 1) AS first
		UNION ALL SELECT (SELECT t.placement` + nextPlaced + `, (SELECT t.type` + nextPlaced + ` FROM classes WHERE classes.placement IS NOT NULL) `
)

// Classes implements ports.Places.
func (r placements) Classes(ctx context.Context, limit int) ([]ports.PlacedWaiting, error) {
	var rows []struct {
		Placement, Type string
		Work, Orphaned  int
		Since           gormtx.Instant
	}
	few := func(aggregate, column string) string {
		return gormtx.Few(r.db.Dialect(), aggregate, column, " FROM {task} t WHERE "+waitsPlaced+" AND t.placement = classes.placement AND t.type = classes.type",
			" ORDER BY t.placement, t.type, t.priority, t.id")
	}
	err := r.scan(ctx, &rows, placedClasses+"SELECT placement, type, "+few("count(*)", "1")+" AS work, "+few("COALESCE(sum(CASE WHEN state = 'ORPHANED' THEN 1 ELSE 0 END), 0)", "t.state")+
		" AS orphaned, "+few("min(created_at)", "t.created_at")+" AS since FROM classes WHERE placement IS NOT NULL LIMIT ?", ports.MostPlaced, ports.MostPlaced, ports.MostPlaced, limit)
	if err != nil {
		return nil, fmt.Errorf("look for tasks with a placement: %w", err)
	}
	list := make([]ports.PlacedWaiting, len(rows))
	for i, row := range rows {
		on, err := ports.ParsePlacement(row.Placement)
		if err != nil {
			return nil, fmt.Errorf("the stored placement %s: %w", row.Placement, err)
		}
		list[i] = ports.PlacedWaiting{PlacedClass: ports.PlacedClass{On: on, Type: row.Type}, Kind: ports.PlacedTask, Work: min(row.Work, ports.MostPlaced), Orphaned: min(row.Orphaned, ports.MostPlaced), Since: row.Since.Time}
	}
	return list, nil
}

// Unassigned implements ports.Places: one statement finds the classes, and one more reads the tasks
// of each class that workers have room for.
func (r placements) Unassigned(ctx context.Context, room func(ports.PlacedClass) ports.Room) ([]ports.Placed, error) {
	var classes []struct{ Placement, Type string }
	if err := r.scan(ctx, &classes, placedClasses+"SELECT placement, type FROM classes WHERE placement IS NOT NULL"); err != nil {
		return nil, fmt.Errorf("look for tasks with a placement: %w", err)
	}
	var all []ports.Placed
	for _, c := range classes {
		on, err := ports.ParsePlacement(c.Placement)
		if err != nil {
			return nil, fmt.Errorf("the stored placement %s: %w", c.Placement, err)
		}
		has := room(ports.PlacedClass{On: on, Type: c.Type})
		if has.Free <= 0 {
			continue
		}
		known, names := decidable("g.decider", has.Deciders)
		list, err := r.placed(ctx, `WHERE t.state IN ('PENDING', 'ORPHANED') AND t.placement <> '' AND t.placement = ? AND t.type = ?
			AND `+known+` AND `+r.isClaimable("t")+` ORDER BY t.priority, t.id LIMIT ?`, append(append([]any{c.Placement, c.Type}, names...), has.Free)...)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// AssignPlaced implements ports.Places: it makes MoveAssign, and passes over a row that another transaction has locked. The
// leader assigns many tasks in one transaction, in the order of their priorities: waiting for a row could be a
// deadlock with a transaction that locks the same rows in another order.
func (r placements) AssignPlaced(ctx context.Context, work ports.Placed, worker string, leader int64) (int64, error) {
	moved, err := r.moveFree(ctx, taskports.Delivery{ID: task.ID(work.ID), Epoch: work.Epoch}, guard.Bulk{
		Move: taskports.MoveAssign, Trigger: "leader",
		Where: append(r.claimable(), r.led(leader), guard.Condition{SQL: "placement <> ''"}),
		Set:   append(r.assigning(worker), guard.Set("leader_epoch", leader), r.now("updated_at")),
	})
	if err != nil || moved == nil {
		return 0, err
	}
	return moved.Epoch, nil
}

// led is the condition that the leader of an epoch still leads. Its transaction has read that row
// with a lock (Fence).
func (r placements) led(epoch int64) guard.Condition {
	return guard.Condition{SQL: r.sql("EXISTS (SELECT 1 FROM {leader} WHERE epoch = ?)"), Args: []any{epoch}, Reason: "another process is the leader", Owner: true}
}

// OrphanPlaced implements ports.Places with MoveOrphan.
func (r placements) OrphanPlaced(ctx context.Context, after time.Duration, leader int64, limit int) (int, error) {
	gone := guard.Condition{
		SQL: r.sql(`assigned_at <= {later} AND NOT EXISTS
			(SELECT 1 FROM {worker} w WHERE w.name = {task}.worker AND w.left_at IS NULL AND w.draining_at IS NULL AND w.lease_until >= {now})`),
		Args: []any{-after.Microseconds()},
	}
	moved, err := r.tasks.MoveAll(ctx, guard.Bulk{
		Move: taskports.MoveOrphan, Where: []guard.Condition{gone, r.led(leader)}, Limit: limit, Set: append(r.delivering(), guard.Set("leader_epoch", leader)),
	})
	return len(moved), err
}

// EndPlaced implements ports.Places. It does nothing: a task's state already records its end.
func (r placements) EndPlaced(context.Context, int64, int) (int, error) { return 0, nil }

func (r placements) AssignedTo(ctx context.Context, worker string, limit int) ([]ports.Placed, error) {
	return r.placed(ctx, "WHERE t.worker = ? AND t.state = 'ASSIGNED' AND "+r.isClaimable("t")+" ORDER BY t.priority, t.id LIMIT ?", worker, limit)
}

func (r placements) placed(ctx context.Context, where string, args ...any) ([]ports.Placed, error) {
	var rows []placedRow
	if err := r.scan(ctx, &rows, selectPlaced+where, args...); err != nil {
		return nil, fmt.Errorf("look for tasks with a placement: %w", err)
	}
	list := make([]ports.Placed, len(rows))
	for i, row := range rows {
		on, err := ports.ParsePlacement(row.Wanted)
		if err != nil {
			return nil, fmt.Errorf("the stored placement of task %d: %w", row.ID, err)
		}
		list[i] = ports.Placed{
			Kind: ports.PlacedTask, ID: row.ID, Epoch: row.Epoch, On: on, State: row.State, Worker: row.Worker, Attempt: row.Attempt,
			Type: row.Type, Decider: row.Decider, Priority: row.Priority, Since: row.CreatedAt.Time,
		}
	}
	return list, nil
}

func (r placements) LoadOf(ctx context.Context, loads map[string]int) error {
	var rows []struct {
		Worker string
		N      int
	}
	err := r.scan(ctx, &rows, `SELECT worker, count(*) AS n FROM {task} WHERE state IN ('ASSIGNED', 'RUNNING') AND (state = 'RUNNING' OR `+r.isClaimable("{task}")+`) GROUP BY worker
		UNION ALL SELECT name, resuming FROM {worker} WHERE resuming > 0 AND left_at IS NULL AND lease_until >= {now}`)
	if err != nil {
		return fmt.Errorf("count the tasks of workers: %w", err)
	}
	for _, row := range rows {
		loads[row.Worker] += row.N
	}
	return nil
}
