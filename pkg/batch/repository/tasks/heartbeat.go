package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Heartbeat implements taskports.Executions. It raises no version and touches no index. It never moves
// the time to confirm to an earlier time: if the reply is lost, the worker counts with an older
// one, perhaps with a longer grace. A worker that has left stays so if the heartbeat says that it drains: the two may
// arrive in the other order.
func (r executions) Heartbeat(ctx context.Context, by taskports.Claimant, held []taskports.Ref) (taskports.Confirmed, error) {
	var c taskports.Confirmed
	types, err := json.Marshal(by.Types)
	if err != nil {
		return c, err
	}
	deciders, err := json.Marshal(append([]string{}, by.Deciders...))
	if err != nil {
		return c, err
	}
	labels, err := json.Marshal(maps.Collect(maps.All(by.Labels)))
	if err != nil {
		return c, err
	}
	var grace int64
	err = r.scan(ctx, &grace, `INSERT INTO {worker} (name, capacity, types, deciders, parts, owner, labels, resuming, version, draining_at, started_at, heartbeat_at, lease_until)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, CASE WHEN ? THEN {now} END, {now}, {now}, {later})
		ON CONFLICT (name) DO UPDATE SET capacity = excluded.capacity, types = excluded.types, deciders = excluded.deciders, parts = excluded.parts, version = excluded.version,
			owner = excluded.owner, labels = excluded.labels, resuming = excluded.resuming, draining_at = COALESCE({worker}.draining_at, excluded.draining_at),
			heartbeat_at = excluded.heartbeat_at, lease_until = excluded.lease_until, left_at = CASE WHEN excluded.draining_at IS NOT NULL THEN {worker}.left_at END
		RETURNING {grace}`,
		by.Worker, by.Capacity, string(types), string(deciders), by.Parts, by.Owner, string(labels), by.Resuming, by.Version, by.Draining, by.Lease.Microseconds())
	if err != nil {
		return c, fmt.Errorf("heartbeat of worker %s: %w", by.Worker, err)
	}
	c.Grace = time.Duration(grace) * time.Microsecond
	if len(held) == 0 {
		return c, nil
	}
	ids := make([]task.ID, len(held))
	for i, ref := range held {
		ids[i] = ref.ID
	}
	var kept []taskRow
	err = r.scan(ctx, &kept, `UPDATE {task} SET lease_until = {later}, confirm_until = {greatest}(COALESCE(confirm_until, {now}), {later}), continuation_state = ?
		WHERE id IN ? AND worker = ? AND state IN ? RETURNING id, epoch`,
		by.Lease.Microseconds(), (by.Lease + c.Grace).Microseconds(), notConfirming, ids, by.Worker, []task.State{task.Assigned, task.Running})
	if err != nil {
		return c, fmt.Errorf("heartbeat of worker %s: %w", by.Worker, err)
	}
	c.Lost, err = r.lost(ctx, held, kept)
	return c, err
}

// lost returns the tasks that the worker holds and does not own any more.
func (r executions) lost(ctx context.Context, held []taskports.Ref, kept []taskRow) ([]taskports.Lost, error) {
	epochs := make(map[task.ID]int64, len(kept))
	for _, row := range kept {
		epochs[row.ID] = row.Epoch
	}
	var lost []taskports.Lost
	for _, ref := range held {
		if epochs[ref.ID] == ref.Epoch {
			continue
		}
		var canceled int // even if it already waits to be executed again
		err := r.scan(ctx, &canceled, "SELECT count(*) FROM {task} WHERE id = ? AND (epoch = ? AND state = ? OR epoch = ? AND last_move = ?)",
			ref.ID, ref.Epoch, task.Canceled, ref.Epoch+1, taskports.MoveRerunLater)
		if err != nil {
			return nil, fmt.Errorf("heartbeat of worker %s: %w", ref.Worker, err)
		}
		cause := core.ErrLostOwner
		if canceled > 0 {
			cause = task.ErrCanceled
		}
		lost = append(lost, taskports.Lost{Ref: ref, Cause: cause})
	}
	return lost, nil
}

func (r executions) Leave(ctx context.Context, worker string) error {
	_, err := r.exec(ctx, "UPDATE {worker} SET left_at = {now} WHERE name = ?", worker)
	return wrapped(err, "worker %s leaves", worker)
}
