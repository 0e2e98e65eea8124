package repository

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// CheckFormer implements ports.Launches.
func (r *launches) CheckFormer(ctx context.Context, jobName string, params core.Parameters) error {
	if params.FormerKey() == "" {
		return nil
	}
	_, err := r.reads.Instance(ctx, jobName, params.Key())
	switch {
	case errors.Is(err, core.ErrNotFound): // it would be a new instance
		return r.refuseFormer(ctx, jobName, params, params.FormerKey())
	case err != nil:
		return err
	}
	return r.refuseFormer(ctx, jobName, params, params.Key())
}

// refuseFormer is CheckFormer under the lock of the launch's instance.
func (l *launch) refuseFormer(ctx context.Context) error {
	params := l.req.Params
	key := params.Key()
	if l.attempts == 1 { // it is new
		key = params.FormerKey()
	}
	err := l.repo.refuseFormer(ctx, l.req.JobName, params, key)
	if errors.As(err, new(*ports.FormerInstanceError)) {
		return &refusalError{err}
	}
	return err
}

// refuseFormer refuses a launch whose parameters name another instance than they named before timestamps were read in the
// time zone of the job, if the instance with this key was made by such a program. One that was abandoned does not count.
func (r *launches) refuseFormer(ctx context.Context, jobName string, params core.Parameters, key string) error {
	if params.FormerKey() == "" {
		return nil
	}
	var rows []jobInstance
	err := gormtx.Find(r.store.session(ctx).Where("job_name = ? AND instance_key = ? AND local_times IS NULL", jobName, key), &rows)
	if err == nil && len(rows) == 0 {
		return nil
	}
	var last *newestExecution
	if err == nil {
		last, err = r.reads.newest(r.reads.ofInstance(ctx, jobName, key))
	}
	if err != nil {
		return fmt.Errorf("launch job %s: %w", jobName, err)
	}
	if last == nil || last.Row.Status == core.StatusAbandoned {
		return nil
	}
	return &ports.FormerInstanceError{JobName: jobName, Execution: last.Row.ID, Status: last.Row.Status, Params: params, Taken: key == params.Key()}
}

// CheckExclusive implements ports.Launches by the query of a launch.
func (r *launches) CheckExclusive(ctx context.Context, jobName string, key core.ExclusiveKey, dead func(core.Owner) bool) error {
	if key == "" {
		return nil
	}
	holder, err := r.holder(ctx, jobName, key)
	if err != nil || holder == nil {
		return err
	}
	return holder.excludes(key, dead)
}

// holder returns the active execution that has the key, or nil. Its conditions match the partial
// index.
func (r *launches) holder(ctx context.Context, jobName string, key core.ExclusiveKey) (*newestExecution, error) {
	held, err := r.reads.newest(r.store.session(ctx).Where("active = 1 AND exclusive_key <> '' AND job_name = ? AND exclusive_key = ?", jobName, key))
	if err != nil {
		return nil, fmt.Errorf("find the running execution with the key of job %s: %w", jobName, err)
	}
	return held, nil
}

// claimKey makes sure that no other execution runs with the launch's key. It ends one with a lost
// owner, as a launch of its instance would. The unique index decides between concurrent launches,
// and the refusal is the same.
func (l *launch) claimKey(ctx context.Context) error {
	if l.req.Exclusive == "" {
		return nil
	}
	holder, err := l.repo.holder(ctx, l.req.JobName, l.req.Exclusive)
	if err != nil || holder == nil {
		return err
	}
	if err := holder.excludes(l.req.Exclusive, l.req.Dead); err != nil {
		return &refusalError{err}
	}
	dead := l.req.Dead != nil && l.req.Dead(ports.ParseOwner(holder.Row.Owner))
	_, err = l.repo.endLost(ctx, &holder.Row, dead, actTakeOver, l.ledger)
	return err
}

// movedSince refuses a launch for an earlier state; last is the newest execution of its instance, or
// nil. For redrives see holdRedriven.
func movedSince(req ports.LaunchRequest, last *newestExecution) error {
	b := req.Bound
	switch {
	case b == nil || req.RedriveOf != 0:
		return nil
	case last == nil:
		return fmt.Errorf("job execution %d: %w", b.Execution, core.ErrNotFound)
	case last.Row.ID == b.Execution && last.Row.Epoch == b.Epoch:
		return nil
	}
	return movedTo(b, &last.Row)
}

func movedTo(b *ports.Bound, now *jobExecution) error {
	return &ports.MovedError{Execution: b.Execution, Newest: now.ID, Status: now.Status, Epoch: now.Epoch}
}

// holdRedriven locks the instance of the execution that a redrive is for, so that it is still the
// newest when the redrive begins, and no other redrive has taken the items since they were selected.
func (l *launch) holdRedriven(ctx context.Context) error {
	b := l.req.Bound
	if b == nil || l.req.RedriveOf == 0 {
		return nil
	}
	var instances []core.JobInstanceID
	var newest, redrives []jobExecution
	err := l.repo.store.scan(ctx, &instances, "SELECT instance_id FROM {job_execution} WHERE id = ?", b.Execution)
	if err == nil {
		err = l.repo.store.lockInstances(ctx, instances)
	}
	if err == nil {
		err = l.repo.store.scan(ctx, &newest, "SELECT id, status, epoch FROM {job_execution} WHERE instance_id IN ? ORDER BY id DESC LIMIT 1", instances)
	}
	if err == nil {
		err = l.repo.store.scan(ctx, &redrives, "SELECT id, status, epoch, owner FROM {job_execution} WHERE redrive_of = ? ORDER BY id DESC LIMIT 1", b.Execution)
	}
	switch {
	case err != nil:
		return err
	case len(newest) == 0:
		return &refusalError{fmt.Errorf("job execution %d: %w", b.Execution, core.ErrNotFound)}
	case b.Epoch != 0 && (newest[0].ID != b.Execution || newest[0].Epoch != b.Epoch):
		return &refusalError{movedTo(b, &newest[0])}
	case len(redrives) > 0 && redrives[0].ID > b.Redrive && !(l.req.Again && redrives[0].Owner == l.req.Owner.String()):
		return &refusalError{movedTo(b, &redrives[0])}
	}
	return nil
}
