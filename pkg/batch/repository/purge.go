package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// defaultPurgeBatch is the number of executions that one transaction of Purge deletes unless the
// filter sets one, and maxPurgeBatch the maximum. Executions of one instance are always deleted
// together.
const (
	defaultPurgeBatch = 500
	maxPurgeBatch     = batchSize
)

// Purge implements ports.Operations, in batches: each is a transaction that locks the instances, as
// a launch does, and judges them again under the lock. It pages by key, so an interrupted purge can
// be repeated.
//
// Everything that a restart would read stays. An older execution is deleted alone only if the
// newest of its instance is COMPLETED or ABANDONED. The newest is deleted with its whole instance,
// which may then run again; so a FAILED instance is deleted only if the filter names FAILED. Three
// kinds of instances stay: one that runs, one with skipped items that are being redriven, and a
// child job that a restart of its parent would pass or resume (rule F2a).
//
// A single instance that the filter names is deleted whatever its age and status, unless it runs or
// its skipped items are being redriven (*ports.AlreadyRunningError).
//
// For each job the parameters of the newest deleted instance stay, for LastPurged.
//
// Purge does not reach checkpoints in other databases. Checkpoints.CollectGarbage deletes those.
func (r *operations) Purge(ctx context.Context, filter ports.PurgeFilter, actor string) (ports.Purged, error) {
	if err := checkPurge(&filter); err != nil {
		return ports.Purged{}, fmt.Errorf("purge: %w", err)
	}
	p := &purge{store: r.store, filter: filter, actor: actor, kept: map[string]core.JobInstanceID{}, seen: map[core.JobInstanceID]bool{}}
	run := p.run
	if filter.Instance != 0 {
		run = p.one
	}
	if err := errors.Join(run(ctx), p.requests(ctx), p.logs(ctx)); err != nil {
		return p.done, fmt.Errorf("purge: %w", err)
	}
	return p.done, nil
}

func (p *purge) logs(ctx context.Context) error {
	if p.filter.DryRun {
		return nil
	}
	return p.store.deletePurgedLogs(ctx)
}

func checkPurge(filter *ports.PurgeFilter) error {
	if filter.EndedBefore.IsZero() && filter.Instance == 0 {
		return errors.New("EndedBefore is required")
	}
	if filter.KeepLast < 0 || filter.Batch < 0 {
		return fmt.Errorf("keep last %d, batch %d: both must not be negative", filter.KeepLast, filter.Batch)
	}
	if len(filter.Statuses) == 0 {
		filter.Statuses = []core.Status{core.StatusCompleted, core.StatusAbandoned}
	}
	for _, status := range filter.Statuses {
		if !status.IsOver() {
			return fmt.Errorf("executions in %s are active and cannot be purged", status)
		}
	}
	if filter.Batch == 0 {
		filter.Batch = defaultPurgeBatch
	}
	filter.Batch = min(filter.Batch, maxPurgeBatch)
	return nil
}

type purge struct {
	store  *store
	filter ports.PurgeFilter
	actor  string
	kept   map[string]core.JobInstanceID // by job: instances from this one on are kept
	// seen are instances already judged. A dry run deletes nothing, so it meets an instance once
	// for each execution.
	seen map[core.JobInstanceID]bool
	done ports.Purged
}

type purgeable struct {
	ID         core.JobExecutionID
	InstanceID core.JobInstanceID
	JobName    string
	Status     core.Status
	EndedAt    instant
	Old        bool // it ended before the time of the filter
	Redriven   bool // a running execution redrives its skipped items
	Called     bool // by a job that may be restarted and would read its outcome
}

// run visits the executions by the time of their end, oldest first.
func (p *purge) run(ctx context.Context) error {
	var last purgeable
	for batches := 0; ; {
		page, err := p.page(ctx, last)
		if err != nil || len(page) == 0 {
			return err
		}
		last = page[len(page)-1]
		if !p.filter.DryRun {
			clear(p.seen)
		}
		var instances []core.JobInstanceID
		for _, e := range page {
			keep, err := p.isKept(ctx, e)
			if err != nil {
				return err
			}
			if !keep && !p.seen[e.InstanceID] {
				p.seen[e.InstanceID] = true
				instances = append(instances, e.InstanceID)
			}
		}
		if len(instances) == 0 {
			continue
		}
		before := p.done.Executions
		if err := p.batch(ctx, instances); err != nil {
			return err
		}
		if p.done.Executions > before {
			if batches++; batches == p.filter.Batches {
				return nil
			}
		}
	}
}

func (p *purge) page(ctx context.Context, last purgeable) ([]purgeable, error) {
	where, args := "", []any{instant{Time: p.filter.EndedBefore}, p.filter.Statuses}
	if p.filter.JobName != "" {
		where, args = "AND job_name = ? ", append(args, p.filter.JobName)
	}
	if last.ID != 0 {
		where, args = where+"AND (ended_at, id) > (?, ?) ", append(args, last.EndedAt, last.ID)
	}
	var page []purgeable
	err := p.store.scan(ctx, &page, `SELECT id, instance_id, job_name, ended_at FROM {job_execution}
		WHERE ended_at < ? AND status IN ? `+where+`ORDER BY ended_at, id LIMIT ?`, append(args, p.filter.Batch)...)
	return page, err
}

// isKept reports whether the instance is among the newest of its job, which are kept.
func (p *purge) isKept(ctx context.Context, e purgeable) (bool, error) {
	if p.filter.KeepLast == 0 {
		return false, nil
	}
	from, known := p.kept[e.JobName]
	if !known {
		err := p.store.scan(ctx, &from, `SELECT COALESCE(MIN(id), 0) FROM
			(SELECT id FROM {job_instance} WHERE job_name = ? ORDER BY id DESC LIMIT ?) AS page`, e.JobName, p.filter.KeepLast)
		if err != nil {
			return false, err
		}
		p.kept[e.JobName] = from
	}
	return e.InstanceID >= from, nil
}

// batch judges instances under their locks and deletes the deletable ones.
func (p *purge) batch(ctx context.Context, instances []core.JobInstanceID) error {
	var done ports.Purged
	err := p.store.transact(ctx, func(ctx context.Context) error {
		if !p.filter.DryRun {
			if err := p.store.lockInstances(ctx, instances); err != nil {
				return err
			}
		}
		found, err := p.purgeables(ctx, instances)
		if err != nil {
			return err
		}
		var emptied []core.JobInstanceID
		var deletable []core.JobExecutionID
		for _, executions := range byInstance(found) {
			ids := deletableExecutions(executions, p.filter.Statuses)
			deletable = append(deletable, ids...)
			if len(ids) == len(executions) {
				emptied = append(emptied, executions[0].InstanceID)
			}
		}
		done, err = p.delete(ctx, deletable, emptied)
		return err
	})
	if err != nil {
		return err
	}
	p.add(done)
	return nil
}

func (p *purge) add(done ports.Purged) {
	p.done.Instances += done.Instances
	p.done.Executions += done.Executions
	p.done.Steps += done.Steps
	p.done.SkippedItems += done.SkippedItems
	p.done.Left = append(p.done.Left, done.Left...)
}

// one deletes the instance that the filter names, in one transaction.
func (p *purge) one(ctx context.Context) error {
	id := p.filter.Instance
	var done ports.Purged
	err := p.store.transact(ctx, func(ctx context.Context) error {
		if !p.filter.DryRun {
			if err := p.store.lockInstances(ctx, []core.JobInstanceID{id}); err != nil {
				return err
			}
		}
		var found []core.JobInstanceID
		var running []jobExecution
		var executions []core.JobExecutionID
		err := errors.Join(
			p.store.scan(ctx, &found, "SELECT id FROM {job_instance} WHERE id = ?", id),
			p.store.scan(ctx, &executions, "SELECT id FROM {job_execution} WHERE instance_id = ?", id),
			p.store.scan(ctx, &running, `SELECT * FROM {job_execution} WHERE id IN (
				SELECT id FROM {job_execution} WHERE instance_id = ? AND active = 1 UNION ALL
				SELECT r.id FROM {job_execution} e JOIN {job_execution} r ON r.redrive_of = e.id WHERE e.instance_id = ? AND r.active = 1)`, id, id))
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return fmt.Errorf("job instance %d: %w", id, core.ErrNotFound)
		case len(running) > 0:
			return alreadyRunning(&running[0], ports.OpenWork{})
		}
		done, err = p.delete(ctx, executions, found)
		return err
	})
	if err == nil {
		p.add(done)
	}
	return err
}

// delete deletes executions, and the instances without any other. A dry run counts them.
func (p *purge) delete(ctx context.Context, executions []core.JobExecutionID, instances []core.JobInstanceID) (done ports.Purged, err error) {
	if p.filter.DryRun {
		done, err = p.countExecutions(ctx, executions)
		done.Instances = int64(len(instances))
		return done, err
	}
	if err := p.keepParameters(ctx, instances); err != nil {
		return done, err
	}
	if done, err = p.deleteExecutions(ctx, executions, p.actor); err != nil {
		return done, err
	}
	done.Instances = int64(len(instances))
	return done, p.deleteInstances(ctx, instances)
}

// lockInstances locks the instances' rows in the order of their IDs, so that concurrent launches
// and purges wait for each other.
func (s *store) lockInstances(ctx context.Context, ids []core.JobInstanceID) error {
	ids = slices.Sorted(slices.Values(ids))
	var locked []jobInstance
	return s.session(ctx).Select("id").Where("id IN ?", ids).Order("id").Clauses(clause.Locking{Strength: "UPDATE"}).Find(&locked).Error
}

// purgeables are all executions of the instances, oldest first.
func (p *purge) purgeables(ctx context.Context, instances []core.JobInstanceID) ([]purgeable, error) {
	var found []purgeable
	err := p.store.scan(ctx, &found, `SELECT e.id, e.instance_id, e.job_name, e.status,
			COALESCE(e.ended_at < ?, FALSE) AS old,
			EXISTS (SELECT 1 FROM {job_execution} r WHERE r.redrive_of = e.id AND r.active = 1) AS redriven,
			EXISTS (SELECT 1 FROM {job_execution} p JOIN {job_execution} n ON n.instance_id = p.instance_id
				WHERE p.id = e.parent_id AND n.status NOT IN ('COMPLETED', 'ABANDONED')
				AND NOT EXISTS (SELECT 1 FROM {job_execution} m WHERE m.instance_id = n.instance_id AND m.id > n.id)) AS called
		FROM {job_execution} e WHERE e.instance_id IN ?`, instant{Time: p.filter.EndedBefore}, instances)
	slices.SortFunc(found, func(a, b purgeable) int { return cmp.Compare(a.ID, b.ID) })
	return found, err
}

func byInstance(executions []purgeable) [][]purgeable {
	groups := map[core.JobInstanceID][]purgeable{}
	var order []core.JobInstanceID
	for _, e := range executions {
		if groups[e.InstanceID] == nil {
			order = append(order, e.InstanceID)
		}
		groups[e.InstanceID] = append(groups[e.InstanceID], e)
	}
	lists := make([][]purgeable, len(order))
	for i, id := range order {
		lists[i] = groups[id]
	}
	return lists
}

// deletableExecutions returns the deletable executions of an instance; executions are sorted oldest
// first.
func deletableExecutions(executions []purgeable, statuses []core.Status) []core.JobExecutionID {
	for _, e := range executions {
		if !e.Status.IsOver() || e.Redriven || e.Called {
			return nil
		}
	}
	newest := executions[len(executions)-1]
	whole := newest.Old && slices.Contains(statuses, newest.Status)
	if !whole && newest.Status != core.StatusCompleted && newest.Status != core.StatusAbandoned {
		return nil // a restart reads all of them
	}
	var deletable []core.JobExecutionID
	for i, e := range executions {
		alone := i < len(executions)-1 && e.Old && slices.Contains(statuses, e.Status)
		if whole || alone {
			deletable = append(deletable, e.ID)
		}
	}
	return deletable
}

// deleteExecutions deletes executions and their dependent rows, and leaves an audit row for each.
func (p *purge) deleteExecutions(ctx context.Context, ids []core.JobExecutionID, actor string) (done ports.Purged, err error) {
	for batch := range slices.Chunk(ids, batchSize) {
		err := p.store.exec(ctx, `INSERT INTO {audit} (at, act, actor, job_execution_id, from_status, epoch, detail, verb, person, job_name)
			SELECT {now}, ?, ?, id, status, epoch, job_name, ?, ?, job_name FROM {job_execution} WHERE id IN ?`, actPurge, actor, ports.VerbPurge, actor, batch).Error
		if err == nil { // from now on their acts are found by job, too
			err = p.store.exec(ctx, `UPDATE {audit} SET job_name = (SELECT e.job_name FROM {job_execution} e WHERE e.id = {audit}.job_execution_id)
				WHERE job_execution_id IN ? AND verb <> '' AND job_name = ''`, batch).Error
		}
		if err != nil {
			return done, err
		}
		left, err := p.store.ofEarlier(ctx, "e.id IN ?", batch)
		if err != nil {
			return done, err
		}
		done.Left = append(done.Left, left...)
		if err := p.keepPositions(ctx, batch); err != nil {
			return done, err
		}
		var params, visits int64
		for _, table := range []struct {
			name  string
			count *int64
		}{{"{skipped_item}", &done.SkippedItems}, {"{job_execution_param}", &params}, {"{flow_visit}", &visits}, {"{step_execution}", &done.Steps}} {
			deleted := p.store.exec(ctx, "DELETE FROM "+table.name+" WHERE job_execution_id IN ?", batch)
			if deleted.Error != nil {
				return done, deleted.Error
			}
			*table.count += deleted.RowsAffected
		}
		deleted := p.store.exec(ctx, "DELETE FROM {job_execution} WHERE id IN ?", batch)
		if deleted.Error != nil {
			return done, deleted.Error
		}
		done.Executions += deleted.RowsAffected
	}
	return done, nil
}

func (p *purge) countExecutions(ctx context.Context, ids []core.JobExecutionID) (done ports.Purged, err error) {
	done.Executions = int64(len(ids))
	for batch := range slices.Chunk(ids, batchSize) {
		var steps, skips int64
		err := errors.Join(
			p.store.scan(ctx, &steps, "SELECT COUNT(*) FROM {step_execution} WHERE job_execution_id IN ?", batch),
			p.store.scan(ctx, &skips, "SELECT COUNT(*) FROM {skipped_item} WHERE job_execution_id IN ?", batch))
		if err != nil {
			return done, err
		}
		done.Steps += steps
		done.SkippedItems += skips
	}
	return done, nil
}

// keepParameters stores, for each job, the parameters of its newest instance among ids, which the
// next instance follows when they are deleted. Redrives, repetitions and instances of a backfill do
// not count.
func (p *purge) keepParameters(ctx context.Context, ids []core.JobInstanceID) error {
	for batch := range slices.Chunk(ids, batchSize) {
		err := p.store.exec(ctx, `INSERT INTO {purged_parameter} (job_name, name, instance_id, type, value, identifying)
			SELECT i.job_name, p.name, i.id, p.type, p.value, p.identifying FROM {job_instance} i
			JOIN {job_execution_param} p ON p.job_execution_id = (SELECT MAX(e.id) FROM {job_execution} e WHERE e.instance_id = i.id)
			WHERE i.id IN (SELECT MAX(id) FROM {job_instance} WHERE id IN ? AND base_key = instance_key AND NOT backfilled GROUP BY job_name)
			ORDER BY i.job_name, p.name
			ON CONFLICT (job_name, name) DO UPDATE SET instance_id = excluded.instance_id, type = excluded.type,
				value = excluded.value, identifying = excluded.identifying
				WHERE excluded.instance_id > {purged_parameter}.instance_id`, batch).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// keepPositions stores, for each step, the position at which it completed in its newest complete
// instance: a later instance continues reading there (ports.Attempts.LastCompleted).
func (p *purge) keepPositions(ctx context.Context, ids []core.JobExecutionID) error {
	return p.store.exec(ctx, `INSERT INTO {purged_position} (job_name, step, instance_id, position)
		SELECT job_name, name, instance_id, position FROM (
			SELECT e.job_name, s.name, e.instance_id, s.position, ROW_NUMBER() OVER (PARTITION BY e.job_name, s.name ORDER BY e.instance_id DESC, s.id DESC) AS place
			FROM {job_execution} e JOIN {step_execution} s ON s.job_execution_id = e.id
			WHERE e.id IN ? AND `+completedPosition+`) newest WHERE place = 1
		ON CONFLICT (job_name, step) DO UPDATE SET instance_id = excluded.instance_id, position = excluded.position
			WHERE excluded.instance_id >= {purged_position}.instance_id`, ids).Error
}

func (p *purge) deleteInstances(ctx context.Context, ids []core.JobInstanceID) error {
	for batch := range slices.Chunk(ids, batchSize) {
		if err := p.store.exec(ctx, "DELETE FROM {job_instance} WHERE id IN ?", batch).Error; err != nil {
			return err
		}
	}
	return nil
}
