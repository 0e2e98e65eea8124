package repository

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	guarded "github.com/surfin-batch/surfin/pkg/batch/guard"
)

// Placements of partitions and child jobs have their own rows (rules PL1 to PL5): the transitions
// of the work's row are the same with and without one. Rows are locked in the order work,
// placement. The leader skips locked rows, so it never waits for one.

// placements implements ports.PlacedWork.
type placements struct{ *auditor }

// errNotAssigned rolls back the transition of a worker that was not assigned the work.
var errNotAssigned = errors.New("the leader has not assigned it to this worker")

func (r *placements) placements() *guarded.Table[string] {
	return guarded.NewTable(r.store.db, r.store.prefix+"placement", ports.Placements(), r.observer)
}

func (r *placements) placeParts(ctx context.Context, rows []*stepExecution, parts []core.Partition) error {
	ids := map[string][]core.StepExecutionID{}
	for i, part := range parts {
		if wants := part.On.Stored(); wants != "" {
			ids[wants] = append(ids[wants], rows[i].ID)
		}
	}
	for _, wants := range slices.Sorted(maps.Keys(ids)) {
		for batch := range slices.Chunk(ids[wants], announceBatch) {
			if err := r.store.exec(ctx, "INSERT INTO {placement} (part_id, wants, created_at) SELECT id, ?, {now} FROM {step_execution} WHERE id IN ?", wants, batch).Error; err != nil {
				return fmt.Errorf("store placements: %w", err)
			}
		}
	}
	return nil
}

// placeExecution stores the placement of a new execution. One that is run by its own process has
// already begun.
func (r *placements) placeExecution(ctx context.Context, id core.JobExecutionID, on *core.Placement, forWorkers bool) error {
	wants, state := on.Stored(), ports.PlaceRunning
	if wants == "" {
		return nil
	}
	if forWorkers {
		state = ports.PlacePending
	}
	return r.store.exec(ctx, "INSERT INTO {placement} (child_id, wants, state, created_at) VALUES (?, ?, ?, {now})", id, wants, state).Error
}

// startPlaced makes the transition start of work assigned to the worker, in the transaction in
// which the worker takes the work, with the work's row locked. It returns false if the work is not
// assigned to the worker.
func (r *placements) startPlaced(ctx context.Context, column string, id int64, worker string) (bool, error) {
	var ids []int64
	if err := r.store.scan(ctx, &ids, "SELECT id FROM {placement} WHERE "+column+" = ?", id); err != nil || len(ids) == 0 {
		return err == nil, err
	}
	moved, err := r.placements().MoveAll(ctx, guarded.Bulk{Move: ports.MovePlaceStart, Limit: 1, Trigger: "worker", Where: []guarded.Condition{
		{SQL: "id = ?", Args: []any{ids[0]}}, {SQL: "worker = ?", Args: []any{worker}},
	}})
	return len(moved) > 0, err
}

type placedRow struct {
	Part, Child, Epoch int64
	Execution          core.JobExecutionID
	Parent             *core.JobExecutionID
	Name, Wants, State string
	Worker             string
	Attempt            int
	Since              instant
}

// selectPlacedPart and selectPlacedChild select the columns of a placedRow.
const (
	selectPlacedPart = `SELECT s.id AS part, s.epoch, s.job_execution_id AS execution, s.name, p.wants, p.state, p.worker, p.attempt, j.created_at AS since
		FROM {placement} p JOIN {step_execution} s ON s.id = p.part_id JOIN {job_execution} j ON j.id = s.job_execution_id `
	selectPlacedChild = `SELECT {job_execution}.id AS child, {job_execution}.epoch, {job_execution}.id AS execution, job_name AS name, p.wants, p.state, p.worker, p.attempt,
		{job_execution}.created_at AS since, parent_id AS parent FROM {placement} p JOIN {job_execution} ON {job_execution}.id = p.child_id `
	// waitingPart and waitingChild are the conditions that placed work waits for a worker.
	waitingPart  = `s.` + openStep + ` AND (s.owner = '' OR s.lease_until <= {now}) AND j.active = 1 AND (NOT j.stop_requested OR ` + ofFinally + `)`
	waitingChild = `owner = '' AND active = 1 AND status IN ('PARKED', 'STOPPING') AND NOT stop_requested AND NOT ` + waits
)

func (r *placements) placed(ctx context.Context, text string, args ...any) ([]ports.Placed, error) {
	var rows []placedRow
	if err := r.store.scan(ctx, &rows, text, args...); err != nil {
		return nil, fmt.Errorf("look for work with a placement: %w", err)
	}
	list := make([]ports.Placed, len(rows))
	for i, row := range rows {
		on, err := ports.ParsePlacement(row.Wants)
		if err != nil {
			return nil, fmt.Errorf("the stored placement of %s of job execution %d: %w", row.Name, row.Execution, err)
		}
		list[i] = ports.Placed{
			Kind: ports.PlacedPart, ID: row.Part, Name: row.Name, Execution: row.Execution, Epoch: row.Epoch, On: on, State: row.State, Worker: row.Worker,
			Attempt: row.Attempt, Parent: orZero(row.Parent), Priority: defaultPriority, Since: row.Since.Time,
		}
		if row.Part == 0 {
			list[i].Kind, list[i].ID = ports.PlacedExecution, row.Child
		}
	}
	return list, nil
}

// placedBoth returns child jobs, then parts, by conditions with the same bind variables.
func (r *placements) placedBoth(ctx context.Context, child, part string, args ...any) ([]ports.Placed, error) {
	children, err := r.placed(ctx, selectPlacedChild+child, args...)
	if err != nil {
		return nil, err
	}
	parts, err := r.placed(ctx, selectPlacedPart+part, args...)
	return append(children, parts...), err
}

// defaultPriority is the default of tasks: partitions and executions queue with them.
const defaultPriority = 2

// Unassigned implements ports.Places.
func (r *placements) Unassigned(ctx context.Context, room func(ports.PlacedClass) ports.Room) ([]ports.Placed, error) {
	var classes []string
	if err := r.store.scan(ctx, &classes, "SELECT DISTINCT wants FROM {placement} WHERE state IN ('PENDING', 'ORPHANED')"); err != nil {
		return nil, fmt.Errorf("look for work with a placement: %w", err)
	}
	var all []ports.Placed
	for _, wants := range classes {
		on, err := ports.ParsePlacement(wants)
		if err != nil {
			return nil, fmt.Errorf("the stored placement %s: %w", wants, err)
		}
		has := room(ports.PlacedClass{On: on})
		if has.Free <= 0 {
			continue
		}
		const which = "WHERE (p.state = 'PENDING' OR p.state = 'ORPHANED' AND (p.attempt < ? OR p.assigned_at <= {later})) AND p.wants = ? AND "
		args := []any{has.Workers, -has.Pause.Microseconds(), wants, has.Free}
		found, err := r.placedBoth(ctx, which+waitingChild+" ORDER BY p.id LIMIT ?", which+waitingPart+" ORDER BY p.id LIMIT ?", args...)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// Classes implements ports.Places: among the first openPlaced placements that wait.
func (r *placements) Classes(ctx context.Context, limit int) ([]ports.PlacedWaiting, error) {
	const openPlaced = 20_000
	var rows []struct {
		Wants          string
		Kind           ports.PlacedKind
		Work, Orphaned int
		Since          instant
	}
	err := r.store.scan(ctx, &rows, `SELECT wants, CASE WHEN part_id IS NULL THEN 'execution' ELSE 'part' END AS kind, count(*) AS work,
			sum(CASE WHEN state = 'ORPHANED' THEN 1 ELSE 0 END) AS orphaned, min(created_at) AS since
		FROM (SELECT wants, part_id, state, created_at FROM {placement} WHERE state IN ('PENDING', 'ORPHANED') LIMIT ?) AS open
		GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ?`, openPlaced, limit)
	if err != nil {
		return nil, fmt.Errorf("look for work with a placement: %w", err)
	}
	list := make([]ports.PlacedWaiting, len(rows))
	for i, row := range rows {
		on, err := ports.ParsePlacement(row.Wants)
		if err != nil {
			return nil, fmt.Errorf("the stored placement %s: %w", row.Wants, err)
		}
		list[i] = ports.PlacedWaiting{PlacedClass: ports.PlacedClass{On: on}, Kind: row.Kind, Work: min(row.Work, ports.MostPlaced), Orphaned: row.Orphaned, Since: row.Since.Time}
	}
	return list, nil
}

// led is the condition that the leader of an epoch still leads. Its transaction has read that row
// with a lock.
func (r *placements) led(epoch int64) guarded.Condition {
	return guarded.Condition{SQL: r.store.sql("EXISTS (SELECT 1 FROM {leader} WHERE epoch = ?)"), Args: []any{epoch}}
}

// AssignPlaced implements ports.Places. It raises the epoch of the work, so that its deliveries to
// another worker find nothing.
func (r *placements) AssignPlaced(ctx context.Context, work ports.Placed, worker string, leader int64) (int64, error) {
	var text, column string
	switch work.Kind {
	case ports.PlacedTask:
		return 0, nil
	case ports.PlacedPart:
		column = "part_id"
		text = `UPDATE {step_execution} SET epoch = epoch + 1 WHERE id = (SELECT id FROM {step_execution} WHERE id = ? AND epoch = ? AND ` + openStep + `
			AND (owner = '' OR lease_until <= {now}) {for no key update} {skip locked}) RETURNING epoch`
	case ports.PlacedExecution:
		column = "child_id"
		text = `UPDATE {job_execution} SET epoch = epoch + 1 WHERE id = (SELECT id FROM {job_execution} WHERE id = ? AND epoch = ? AND owner = '' AND active = 1 {for no key update} {skip locked}) RETURNING epoch`
	}
	var epoch int64
	err := r.store.transact(ctx, func(ctx context.Context) error {
		var epochs []int64
		if err := r.store.scan(ctx, &epochs, text, work.ID, work.Epoch); err != nil || len(epochs) == 0 {
			return err
		}
		moved, err := r.placements().MoveAll(ctx, guarded.Bulk{
			Move: ports.MovePlaceAssign, Limit: 1, Trigger: "leader", Where: []guarded.Condition{{SQL: column + " = ?", Args: []any{work.ID}}, r.led(leader)},
			Set: []guarded.Assignment{
				guarded.Set("worker", worker), guarded.Set("leader_epoch", leader), guarded.SetSQL("attempt", "attempt + 1"), guarded.SetSQL("assigned_at", r.store.sql("{now}")),
			},
		})
		if err == nil && len(moved) > 0 {
			epoch = epochs[0]
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("assign %s %d to worker %s: %w", work.Kind, work.ID, worker, err)
	}
	return epoch, nil
}

// OrphanPlaced implements ports.Places. It also makes the transition return.
func (r *placements) OrphanPlaced(ctx context.Context, after time.Duration, leader int64, limit int) (int, error) {
	table := r.placements()
	returned := r.store.sql(`(EXISTS (SELECT 1 FROM {step_execution} s JOIN {job_execution} j ON j.id = s.job_execution_id WHERE s.id = part_id AND ` + waitingPart + `)
		OR EXISTS (SELECT 1 FROM {job_execution} WHERE id = child_id AND ` + waitingChild + `))`)
	gone := r.store.sql(`assigned_at <= {later} AND NOT EXISTS
		(SELECT 1 FROM {worker} w WHERE w.name = worker AND w.left_at IS NULL AND w.draining_at IS NULL AND w.lease_until >= {now})`)
	n := 0
	for _, move := range []struct {
		name  string
		where guarded.Condition
		set   []guarded.Assignment
	}{
		{ports.MovePlaceReturn, guarded.Condition{SQL: returned}, nil},
		{ports.MovePlaceOrphan, guarded.Condition{SQL: gone, Args: []any{-after.Microseconds()}}, []guarded.Assignment{guarded.Set("leader_epoch", leader)}},
	} {
		moved, err := table.MoveAll(ctx, guarded.Bulk{Move: move.name, Limit: limit, Trigger: "leader", Where: []guarded.Condition{move.where, r.led(leader)}, Set: move.set})
		if err != nil {
			return 0, err
		}
		n = max(n, len(moved))
	}
	return n, nil
}

// GiveBack implements ports.Parks.
func (r *placements) GiveBack(ctx context.Context, work ports.Ready, worker string) error {
	column, id := "child_id", int64(work.Execution)
	if work.Part != 0 {
		column, id = "part_id", int64(work.Part)
	}
	_, err := r.placements().MoveAll(ctx, guarded.Bulk{Move: ports.MovePlaceOrphan, Limit: 1, Trigger: "worker", Where: []guarded.Condition{
		{SQL: column + " = ?", Args: []any{id}}, {SQL: "worker = ?", Args: []any{worker}},
	}})
	if err != nil {
		return fmt.Errorf("return the assignment of %s %d: %w", column, id, err)
	}
	return nil
}

// EndPlaced implements ports.Places.
func (r *placements) EndPlaced(ctx context.Context, leader int64, limit int) (int, error) {
	over := r.store.sql("NOT EXISTS (SELECT 1 FROM {step_execution} WHERE id = part_id AND " + openStep + ") AND NOT EXISTS (SELECT 1 FROM {job_execution} WHERE id = child_id AND active = 1)")
	moved, err := r.placements().MoveAll(ctx, guarded.Bulk{Move: ports.MovePlaceEnd, Limit: limit, Trigger: "leader", Where: []guarded.Condition{{SQL: over}, r.led(leader)}})
	return len(moved), err
}

// AssignedTo implements ports.Places.
func (r *placements) AssignedTo(ctx context.Context, worker string, limit int) ([]ports.Placed, error) {
	var some []int64
	err := r.store.scan(ctx, &some, "SELECT id FROM {placement} WHERE state = 'ASSIGNED' AND worker = ? LIMIT 1", worker)
	if err != nil || len(some) == 0 { // as nearly always
		return nil, err
	}
	const which = "WHERE p.state = 'ASSIGNED' AND p.worker = ? ORDER BY p.id LIMIT ?"
	return r.placedBoth(ctx, which, which, worker, limit)
}

// LoadOf implements ports.Places: it counts partitions that workers have, work assigned to them, and
// executions with a placement that they continue.
func (r *placements) LoadOf(ctx context.Context, loads map[string]int) error {
	var rows []struct {
		Worker string
		N      int
	}
	err := r.store.scan(ctx, &rows, `SELECT w.name AS worker, count(*) AS n FROM {worker} w JOIN {step_execution} s ON s.owner = w.owner
			WHERE w.owner <> '' AND w.left_at IS NULL AND w.lease_until >= {now} AND s.manager_id IS NOT NULL AND s.`+openStep+` GROUP BY w.name
		UNION ALL SELECT p.worker, count(*) FROM {placement} p WHERE p.state = 'ASSIGNED' GROUP BY p.worker
		UNION ALL SELECT p.worker, count(*) FROM {placement} p JOIN {job_execution} j ON j.id = p.child_id WHERE p.state = 'RUNNING' AND p.worker <> '' AND j.active = 1 AND j.owner <> '' GROUP BY p.worker`)
	if err != nil {
		return fmt.Errorf("count the work of workers: %w", err)
	}
	for _, row := range rows {
		loads[row.Worker] += row.N
	}
	return nil
}

// PlacedOf returns placed work that no worker has begun: partitions and child jobs of executions,
// and the executions themselves.
func (r *placements) PlacedOf(ctx context.Context, ids ...core.JobExecutionID) ([]ports.Placed, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	const which = "WHERE p.state IN ('PENDING', 'ASSIGNED', 'ORPHANED') AND "
	children, err := r.placed(ctx, selectPlacedChild+which+"active = 1 AND ({job_execution}.id IN ? OR parent_id IN ?) ORDER BY p.id LIMIT ?", ids, ids, mostPlaced)
	if err != nil {
		return nil, err
	}
	parts, err := r.placed(ctx, selectPlacedPart+which+"s."+openStep+" AND s.job_execution_id IN ? ORDER BY p.id LIMIT ?", ids, mostPlaced)
	return append(children, parts...), err
}

const mostPlaced = 1000
