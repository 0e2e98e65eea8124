package tasks

import (
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Repository has the ports of the tasks in one database. It is safe for concurrent use.
type Repository struct {
	taskports.Repository
	waiters *waiters
}

// Options change a Repository; zero fields do nothing.
type Options struct {
	// Observer receives every transition and its answer.
	Observer core.Observer
	// Mask hides secrets in the stored ends of attempts: outcomes, reasons and log text.
	Mask func(text string) string
	// Logs has the log text that was moved out of the database.
	Logs taskports.LogStore
}

// New returns the tasks of db, in tables with names that begin with prefix. It does no I/O.
func New(db tx.Database, prefix string, o Options) (*Repository, error) {
	s, err := newStore(db, prefix, o.Mask)
	if err != nil {
		return nil, err
	}
	m := &moves{s, guard.NewTable(db, prefix+"task", taskports.Machine(), o.Observer, guard.Strict(), guard.Wait(0))}
	inOrder, ofGroups, waiting := order{m}, groups{s}, &waiters{store: s}
	decided := endings{m, inOrder, ofGroups, waiting}
	return &Repository{waiters: waiting, Repository: taskports.Repository{
		Submissions:   submissions{m, inOrder, ofGroups, waiting},
		Executions:    executions{decided},
		Deliveries:    queue{s},
		Maintenance:   maintenance{decided},
		TaskQueries:   taskQueries{s, o.Logs},
		GroupQueries:  groupQueries{s, ofGroups},
		WorkerQueries: workerQueries{s},
		Places:        placements{m},
		Leadership:    leadership{s},
		Settings:      settings{s},
		Notes:         notes{s},
		Logs:          logs{s},
		Purges:        purges{s},
	}}, nil
}

// SetWaiters sets the Waiters to notify when tasks end that a step waits for; nil means none. It
// must not be called once the repository is in use.
func (r *Repository) SetWaiters(w taskports.Waiters) { r.waiters.steps = w }
