package repository

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// launches implements ports.Launches.
type launches struct {
	*takeovers
	reads  *explorer
	places *placements
}

// Launch implements ports.Launches. It is one transaction that first locks the instance's row, so
// launches of one instance are serialized. It takes at most eight statements however long the
// history is (rules L1, R2; a take-over of very many steps writes their audit rows in batches), and
// one more if it runs from the start. A key costs one more, and three to end an execution that has
// it and lost its owner. A new instance is one statement on PostgreSQL.
//
// A take-over is committed even if the launch is then refused because the job is not restartable:
// the lost execution has ended in either case.
func (r *launches) Launch(ctx context.Context, req ports.LaunchRequest) (ports.Launched, error) {
	if req.JobName == "" || req.Lease <= 0 {
		return ports.Launched{}, fmt.Errorf("launch: a job name and a positive lease are needed (job %q, lease %v)", req.JobName, req.Lease)
	}
	ctx, end := r.boundLaunch(ctx, req)
	defer end()
	for tries := 1; ; tries++ {
		launched, err := r.tryLaunch(ctx, req)
		if !errors.Is(err, errFreed) || tries == maxTries {
			return launched, err
		}
	}
}

// errFreed reports that a unique index stopped a launch, but the conflicting execution has ended or
// is lost by now. A launch gives up after maxTries such executions.
var errFreed = errors.New("it found an execution that has ended")

const maxTries = 20

func (r *launches) tryLaunch(ctx context.Context, req ports.LaunchRequest) (ports.Launched, error) {
	if err := r.refuseRunning(ctx, req); err != nil {
		return ports.Launched{}, err
	}
	if launched, done, err := r.launchNew(ctx, req); done || err != nil {
		return launched, err
	}
	l := &launch{repo: r, req: req}
	_, err := r.recorded(ctx, req.Owner.String(), l.run)
	var refusal *refusalError
	switch {
	case errors.Is(err, errLaunchedBefore):
		return l.launched, nil
	case errors.As(err, &refusal):
		return ports.Launched{}, refusal.reason
	case dberr.IsUniqueViolation(err):
		return ports.Launched{}, r.explainConflict(ctx, req, err)
	case err != nil:
		return ports.Launched{}, r.wrapOwner(ctx, req, fmt.Errorf("launch job %s: %w", req.JobName, err))
	}
	if l.refused != nil {
		return ports.Launched{}, l.refused
	}
	return l.launched, nil
}

// refuseRunning refuses an instance that runs, on a database with one writer, without waiting for
// that writer: it may well be the running job (rule L7).
func (r *launches) refuseRunning(ctx context.Context, req ports.LaunchRequest) error {
	if !r.store.db.SingleWriter() || req.Again {
		return nil
	}
	if err := r.CheckFormer(ctx, req.JobName, req.Params); err != nil {
		return err
	}
	last, err := r.reads.newest(r.reads.ofInstance(ctx, req.JobName, req.Params.Key()))
	if err != nil {
		return fmt.Errorf("launch job %s: %w", req.JobName, err)
	}
	if err := movedSince(req, last); err != nil {
		return err
	}
	if last != nil && !last.Row.Status.IsOver() {
		exec, err := last.Row.record()
		if err != nil {
			return err
		}
		if attempt := last.attempt(exec, req.Dead); !attempt.Lost {
			return attempt.Refusal(req.Restartable)
		}
	}
	return r.CheckExclusive(ctx, req.JobName, req.Exclusive, req.Dead)
}

// errLaunchedBefore rolls back a launch that the same request has already made, though its reply
// was lost.
var errLaunchedBefore = errors.New("it was launched before")

type launch struct {
	repo     *launches
	ledger   *ledger
	req      ports.LaunchRequest
	instance core.JobInstanceID
	attempts int64 // launches of the instance, including this one
	launched ports.Launched
	refused  error // after a take-over, which is committed nevertheless
}

func (l *launch) run(ctx context.Context, notes *ledger) error {
	l.ledger, l.launched, l.refused = notes, ports.Launched{}, nil
	if err := l.holdRedriven(ctx); err != nil {
		return err
	}
	if err := l.lockInstance(ctx); err != nil {
		return err
	}
	if err := l.refuseFormer(ctx); err != nil {
		return err
	}
	if l.attempts == 1 { // the instance is new
		if err := movedSince(l.req, nil); err != nil {
			return &refusalError{err}
		}
		return l.begin(ctx)
	}
	last, err := l.last(ctx)
	if err != nil {
		return err
	}
	if last == nil {
		return &refusalError{fmt.Errorf("job %s, instance %d has no execution: %w", l.req.JobName, l.instance, ports.ErrIllegalState)}
	}
	previous := last.Row.with(last.Params)
	if previous.Unreadable != nil {
		return previous.Unreadable
	}
	if l.req.Again && last.Row.Status == core.StatusStarting && last.Row.Owner == l.req.Owner.String() {
		if l.launched.Previous, err = l.repo.reads.before(ctx, &previous); err == nil {
			l.launched.Execution, err = &previous, errLaunchedBefore
		}
		return err
	}
	if err := movedSince(l.req, last); err != nil {
		return &refusalError{err}
	}
	l.launched.Previous = &previous
	if err := l.admit(ctx, last); err != nil || l.refused != nil {
		return err
	}
	return l.begin(ctx)
}

func (l *launch) begin(ctx context.Context) error {
	if err := l.claimKey(ctx); err != nil {
		return err
	}
	return l.insert(ctx)
}

// lockInstance creates or finds the instance and counts the launch. The upsert locks the row in
// both cases.
func (l *launch) lockInstance(ctx context.Context) error {
	row := jobInstance{JobName: l.req.JobName, InstanceKey: l.req.Params.Key(), Attempts: 1, CreatedAt: clock(0), Backfilled: l.req.Backfill, LocalTimes: new(true)}
	if l.req.RedriveOf == 0 {
		row.BaseKey = l.req.Params.BaseKey()
	}
	session := l.repo.store.session(ctx)
	if !row.Backfilled {
		session = session.Omit("Backfilled")
	}
	err := session.Clauses(
		clause.OnConflict{
			Columns:   []clause.Column{{Name: "job_name"}, {Name: "instance_key"}},
			DoUpdates: clause.Assignments(map[string]any{"attempts": gorm.Expr(l.repo.store.sql("{job_instance}.attempts + 1"))}),
		},
		clause.Returning{Columns: []clause.Column{{Name: "id"}, {Name: "attempts"}}},
	).Create(&row).Error
	l.instance, l.attempts = row.ID, row.Attempts
	if err != nil || row.Attempts > 1 {
		return err
	}
	return l.repo.store.exec(ctx, "INSERT INTO {instance_identity} (instance_id, uid) VALUES (?, ?)", row.ID, rand.Text()).Error
}

// last reads the newest execution and locks it, so that no heartbeat in between can make the
// judgement of its lease wrong.
func (l *launch) last(ctx context.Context) (*newestExecution, error) {
	return l.repo.reads.newest(l.repo.store.session(ctx).Where("instance_id = ?", l.instance).Clauses(clause.Locking{Strength: "NO KEY UPDATE"}))
}

// admit decides whether a new execution may follow the last one. It ends a lost one first. The
// unfinished steps of an ended one are counted again under its lock, because a step that ended with
// it may have been read as unfinished.
func (l *launch) admit(ctx context.Context, last *newestExecution) error {
	if last.Row.Status.IsOver() && last.Unfinished > 0 {
		err := l.repo.store.scan(ctx, &last.Unfinished, "SELECT COUNT(*) FROM {step_execution} WHERE job_execution_id = ? AND "+openStep, last.Row.ID)
		if err != nil {
			return err
		}
	}
	attempt := last.attempt(*l.launched.Previous, l.req.Dead)
	refused := attempt.Refusal(l.req.Restartable)
	if from := l.req.From; from != nil {
		if last.Row.ID != from.After {
			return &refusalError{&ports.NotNewestError{JobName: l.req.JobName, Execution: from.After, Newest: last.Row.ID, Status: last.Row.Status}}
		}
		if from.IfComplete {
			refused = attempt.RefusalIfComplete(l.req.Restartable)
		}
	}
	if attempt.Lost {
		l.refused = refused
		return l.takeOver(ctx, last)
	}
	if refused != nil {
		return &refusalError{refused}
	}
	if !last.Unsettled && !last.Settles {
		return nil
	}
	p := l.launched.Previous
	if last.Settles {
		p.Status, p.Settles = core.StatusFailed, false
	}
	return l.repo.settle(ctx, p.ID, l.ledger)
}

func (l *launch) takeOver(ctx context.Context, last *newestExecution) error {
	lost, err := l.repo.endLost(ctx, &last.Row, true, actTakeOver, l.ledger)
	if err != nil {
		return err
	}
	if lost == nil { // the row is locked: no other process can have moved it
		return fmt.Errorf("take over execution %d: its row changed under the lock", last.Row.ID)
	}
	p := l.launched.Previous
	p.Status, p.ExitCode, p.Error, p.Epoch, p.EndedAt = core.StatusFailed, core.ExitFailed, lostOwner, lost.Epoch, lost.EndedAt.Time
	l.launched.TookOver = true
	return nil
}

// row is the new execution. Epoch and job context come from the previous execution. A run from the start begins with
// an empty context.
func (l *launch) row() (row jobExecution, err error) {
	files, err := encodeFiles(l.req.Definition.Files)
	if err != nil {
		return row, err
	}
	confinement, err := encodeConfinement(l.req.Confinement)
	if err != nil {
		return row, err
	}
	one := int64(1)
	row = jobExecution{
		Confinement: confinement,
		InstanceID:  l.instance, JobName: l.req.JobName, Attempt: 1, Status: core.StatusStarting,
		DefinitionHash: l.req.Definition.Hash, DefinitionText: l.req.Definition.Text,
		DefinitionPath: l.req.Definition.Path, DefinitionFiles: files,
		Owner: l.req.Owner.String(), Epoch: 1, LastEpoch: 1, Active: &one,
		LeaseUntil: clock(l.req.Lease), JobTime: clock(0), CreatedAt: clock(0), ExclusiveKey: l.req.Exclusive, LocalTimes: new(true),
	}
	if l.req.RedriveOf != 0 {
		row.RedriveOf = &l.req.RedriveOf
	}
	if l.req.Task != 0 {
		row.TaskID = &l.req.Task
	}
	return row, l.follow(&row)
}

// insert writes the new execution and its parameters.
func (l *launch) insert(ctx context.Context) error {
	row, err := l.row()
	if err != nil {
		return err
	}
	if l.req.Parent != 0 {
		row.ParentID, row.ParentCall = &l.req.Parent, &l.req.ParentCall
		if err := l.inheritStop(ctx, &row); err != nil {
			return err
		}
		if row.StopRequested && l.req.ForWorkers { // no worker would have anything to do
			return &refusalError{fmt.Errorf("not started: %w", core.ErrStopped)}
		}
	}
	if l.req.ForWorkers {
		row.Status, row.Owner, row.LeaseUntil = core.StatusParked, "", instant{}
	}
	returning := clause.Returning{Columns: []clause.Column{{Name: "id"}, {Name: "lease_until"}, {Name: "job_time"}, {Name: "created_at"}}}
	if err := l.repo.store.session(ctx).Clauses(returning).Create(&row).Error; err != nil {
		return err
	}
	if err := l.claim(ctx, row.ID); err != nil {
		return err
	}
	if err := l.repo.places.placeExecution(ctx, row.ID, l.req.On, l.req.ForWorkers); err != nil {
		return err
	}
	if err := l.startOver(ctx, &row); err != nil {
		return err
	}
	params, err := paramRows(row.ID, l.req.Params)
	if err != nil {
		return err
	}
	if len(params) > 0 {
		if err := l.repo.store.session(ctx).Create(&params).Error; err != nil {
			return err
		}
	}
	l.noteLaunch(&row)
	if err := l.launch(&row); err != nil || !l.req.ForWorkers {
		return err
	}
	return l.repo.announceResume(ctx, row.ID)
}

func (l *launch) launch(row *jobExecution) error {
	exec, err := row.record()
	exec.Params = row.located(l.req.Params)
	l.launched.Execution = &exec
	return err
}

// explainConflict returns the error of a launch that a unique index stopped: that the instance is
// active (the last line of defense after the instance's lock), or that the key is taken.
func (r *launches) explainConflict(ctx context.Context, req ports.LaunchRequest, cause error) error {
	row, err := r.reads.active(ctx, req)
	if err == nil && row == nil {
		err = r.CheckExclusive(ctx, req.JobName, req.Exclusive, req.Dead)
		var refused *ports.ExclusiveError
		if errors.As(err, &refused) {
			return refused
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("launch job %s: %w", req.JobName, cause), err)
	}
	if row == nil {
		return fmt.Errorf("launch job %s: %w: %w", req.JobName, errFreed, cause)
	}
	return alreadyRunning(row, ports.OpenWork{})
}
