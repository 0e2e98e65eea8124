package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const (
	sweepLimit  = 100
	sweepRounds = 20
)

// Sweep does work on all tasks. Its methods join ctx's transaction, with the
// leader's guard; they return the number of moved tasks (the leader's at most
// 100), and may run concurrently in several processes.
type Sweep struct {
	tasks    taskports.Maintenance
	engine   engine.Engine
	manager  *tx.Manager
	deciders []string
	decide   taskports.Decide
}

// NewSweep decides for the groups that name a decider of the catalog.
func NewSweep(db tx.Database, tasks taskports.Maintenance, e engine.Engine, c *Catalog) (*Sweep, error) {
	decide, err := c.Decide()
	if err != nil {
		return nil, err
	}
	return &Sweep{tasks: tasks, engine: e, manager: tx.NewManager(db), deciders: c.Deciders(), decide: decide}, nil
}

// MakeDue delivers the retries that are due.
func (s *Sweep) MakeDue(ctx context.Context) (int, error) {
	return s.deliver(ctx, func(ctx context.Context) ([]taskports.Delivery, error) { return s.tasks.MakeDue(ctx, sweepLimit) })
}

// Recover marks overdue heartbeats, ends executions with an owner past its
// deadline, and waiting tasks of groups past theirs.
func (s *Sweep) Recover(ctx context.Context) (int, error) {
	total := 0
	var errs []error
	for _, act := range []func(context.Context) (int, error){
		func(ctx context.Context) (int, error) { return s.tasks.Confirm(ctx, sweepLimit) },
		func(ctx context.Context) (int, error) {
			return s.tasks.Reap(ctx, sweepLimit, s.deciders, s.decide)
		},
		func(ctx context.Context) (int, error) { return s.tasks.ExpireDeadlines(ctx, sweepLimit) },
	} {
		n, err := repeated(ctx, act)
		total += n
		errs = append(errs, err)
	}
	return total, errors.Join(errs...)
}

const openLeftEvery = time.Minute

// Duties opens the tasks that an older program has left waiting, and calls
// Redeliver if the engine may lose deliveries.
func (s *Sweep) Duties(waiting, every time.Duration) []Duty {
	duties := []Duty{{Name: "release waiting tasks", Every: openLeftEvery, Do: func(ctx context.Context) (bool, error) {
		n, err := s.deliverOnce(ctx, func(ctx context.Context) ([]taskports.Delivery, error) { return s.tasks.OpenLeft(ctx, sweepLimit) })
		return n >= sweepLimit, err
	}}}
	if s.engine.Capabilities().Loses {
		duties = append(duties, Duty{Name: "deliver lost tasks", Every: every, Do: func(ctx context.Context) (bool, error) {
			n, err := s.Redeliver(ctx, waiting)
			return n >= sweepLimit, err
		}})
	}
	return duties
}

const readyLimit = 1000

// RedeliverReady delivers waiting parts and parked executions again if their
// delivery was lost or their worker's lease has expired; it visits readyLimit
// per call. It does nothing if the engine loses none.
func RedeliverReady(parts ports.Parks, e engine.Engine, every time.Duration) Duty {
	var place ports.ReadyPlace
	return Duty{Name: "deliver lost parts", Every: every, Do: func(ctx context.Context) (bool, error) {
		if !e.Capabilities().Loses {
			return false, nil
		}
		list, err := parts.Ready(ctx, place, readyLimit)
		if err != nil {
			return false, err
		}
		if len(list) == 0 {
			place = ports.ReadyPlace{}
			return false, nil
		}
		missing, err := e.Missing(ctx, readyDeliveries(list)...)
		if err == nil {
			err = e.Enqueue(ctx, missing...)
		}
		for _, r := range list {
			if r.Part == 0 {
				place.Execution = max(place.Execution, r.Execution)
			} else {
				place.Part = max(place.Part, r.Part)
			}
		}
		return true, err
	}}
}

// MissingDeciders notifies the observer of deciders that tasks wait for and no
// live worker has.
func MissingDeciders(workers taskports.WorkerQueries, observer core.Observer, every time.Duration) Duty {
	return Duty{Name: "find deciders", Every: every, Do: func(ctx context.Context) (bool, error) {
		missing, err := workers.WaitingDeciders(ctx)
		for _, d := range missing {
			core.Observers(observer).Observe(ctx, core.DeciderMissing{Decider: d.Name, Tasks: d.Tasks})
		}
		return false, err
	}}
}

const moveLimit = 50

// MoveLogs moves old log text to the store, by log_retention_days_db. It fails
// without a store if text has to move.
func MoveLogs(settings taskports.Settings, logs taskports.Logs, to taskports.LogStore, every time.Duration) Duty {
	return Duty{Name: "move old log text", Every: every, Do: func(ctx context.Context) (bool, error) {
		list, err := settings.Settings(ctx)
		days := taskports.SettingIn(list, taskports.LogRetention)
		switch {
		case err != nil || days == 0:
			return false, err
		case to == nil:
			return false, fmt.Errorf("%s is %d, but tasks.logs of this process names no folder: log text stays in the database", taskports.LogRetention, days)
		}
		n, err := logs.MoveLogs(ctx, to, time.Duration(days)*24*time.Hour, moveLimit)
		return n == moveLimit, err
	}}
}

// PurgeOld deletes rows that ended more days ago than the setting. Each purge
// deletes one batch, and reports whether there may be more.
func PurgeOld(settings taskports.Settings, setting string, every time.Duration, purges ...func(ctx context.Context, age time.Duration) (more bool, err error)) Duty {
	return Duty{Name: "purge by " + setting, Every: every, Do: func(ctx context.Context) (bool, error) {
		list, err := settings.Settings(ctx)
		days := taskports.SettingIn(list, setting)
		if err != nil || days == 0 {
			return false, err
		}
		again := false
		for _, purge := range purges {
			more, err := purge(ctx, time.Duration(days)*24*time.Hour)
			if err != nil {
				return false, err
			}
			again = again || more
		}
		return again, nil
	}}
}

// Redeliver delivers tasks again that waited longer than after and that the
// engine has lost. The leader calls it.
func (s *Sweep) Redeliver(ctx context.Context, after time.Duration) (int, error) {
	return s.deliverOnce(ctx, func(ctx context.Context) ([]taskports.Delivery, error) {
		waiting, err := s.tasks.Waiting(ctx, after, sweepLimit)
		if err != nil || len(waiting) == 0 {
			return nil, err
		}
		missing, err := s.engine.Missing(ctx, taskDeliveries(waiting)...)
		if err != nil || len(missing) == 0 {
			return nil, err
		}
		lost := make([]taskports.Delivery, len(missing))
		for i, d := range missing {
			lost[i] = taskDelivery(d)
		}
		return s.tasks.Redeliver(ctx, lost)
	})
}

func (s *Sweep) deliver(ctx context.Context, move func(ctx context.Context) ([]taskports.Delivery, error)) (int, error) {
	return repeated(ctx, func(ctx context.Context) (int, error) { return s.deliverOnce(ctx, move) })
}

// In the transaction of the moves.
func (s *Sweep) deliverOnce(ctx context.Context, move func(ctx context.Context) ([]taskports.Delivery, error)) (n int, err error) {
	err = s.manager.Do(ctx, tx.Attr{}, func(ctx context.Context) error {
		found, err := move(ctx)
		if err != nil || len(found) == 0 {
			return err
		}
		n = len(found)
		return s.engine.Enqueue(ctx, taskDeliveries(found)...)
	})
	return n, err
}

func repeated(ctx context.Context, act func(ctx context.Context) (int, error)) (total int, err error) {
	for range sweepRounds {
		n, err := act(ctx)
		total += n
		if err != nil || n < sweepLimit {
			return total, err
		}
	}
	return total, nil
}
