//test:plain

package repository_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type family struct {
	*testing.T
	db            tx.Database
	repo          *repository.Repository
	heard         *heard
	parent, child ports.JobRef
}

func newFamily(t *testing.T, name string, db tx.Database) *family {
	t.Helper()
	f := &family{T: t, db: db, heard: &heard{}}
	f.repo = repository.New(db, repository.Options{Announcer: f.heard})
	require.NoError(t, f.repo.Migrate(t.Context()))
	me := core.Owner{Host: "here", PID: 1}
	launch := func(req ports.LaunchRequest) ports.JobRef {
		req.Owner, req.Lease, req.JobName = me, time.Hour, name+req.JobName
		launched, err := f.repo.Launch(t.Context(), req)
		require.NoError(t, err)
		return ports.JobRef{ID: launched.Execution.ID, Owner: me, Epoch: launched.Execution.Epoch}
	}
	f.parent = launch(ports.LaunchRequest{JobName: "parent"})
	_, err := f.repo.ChangeJob(t.Context(), f.parent, ports.JobChange{To: core.StatusStarted})
	require.NoError(t, err)
	f.child = launch(ports.LaunchRequest{JobName: "child", Parent: f.parent.ID, ForWorkers: true})
	require.Equal(t, []ports.Ready{{Execution: f.child.ID, Epoch: f.child.Epoch}}, f.heard.list)
	return f
}

func (f *family) begin() {
	f.Helper()
	resumed, err := f.repo.Resume(f.Context(), f.child.ID, ports.ResumeRequest{Owner: f.child.Owner, Lease: time.Hour})
	require.NoError(f, err)
	require.True(f, resumed.First)
	f.child.Epoch = resumed.Execution.Epoch
}

func (f *family) park() error {
	_, err := f.repo.Park(f.Context(), f.parent, ports.Parking{})
	return err
}

// Rule P7.
func TestTheEndOfAChildAnnouncesItsParkedParent(t *testing.T) {
	t.Parallel()
	ends := map[string]func(f *family) error{
		"it completes at once": func(f *family) error {
			f.begin()
			first, parked := make(chan struct{}), make(chan error, 1)
			go func() {
				<-first
				parked <- f.park()
			}()
			err := tx.NewManager(f.db).Do(f.Context(), tx.Attr{}, func(ctx context.Context) error {
				_, err := f.repo.ChangeJob(ctx, f.child, ports.JobChange{To: core.StatusCompleted})
				close(first)
				time.Sleep(100 * time.Millisecond) // the park has to wait for the lock; without a lock it would have ended
				return err
			})
			require.NoError(f, <-parked)
			return err
		},
		"it is lost": func(f *family) error {
			f.begin()
			require.NoError(f, f.park())
			require.NoError(f, f.repo.RecoverChildren(f.Context(), "test", nil))
			require.Len(f, f.heard.list, 1, "its lease lives")
			return f.repo.RecoverChildren(f.Context(), "test", func(core.Owner) bool { return true })
		},
		"it is stopped before it begins": func(f *family) error {
			require.NoError(f, f.park())
			_, err := f.repo.RequestStop(f.Context(), f.child.ID, ports.By{Actor: "test"})
			return err
		},
	}
	testengine.EachDatabase(t, func(t *testing.T, db tx.Database) {
		for name, end := range ends {
			f := newFamily(t, name, db)
			require.NoError(t, end(f), name)
			require.Equal(t, []ports.Ready{{Execution: f.parent.ID, Epoch: f.parent.Epoch}}, f.heard.list[1:], name)
			resumed, err := f.repo.Resume(t.Context(), f.parent.ID, ports.ResumeRequest{Owner: f.parent.Owner, Lease: time.Hour})
			require.NoError(t, err, name)
			require.False(t, resumed.First, name)
			_, err = f.repo.ChangeJob(t.Context(), ports.JobRef{ID: f.parent.ID, Owner: f.parent.Owner, Epoch: resumed.Execution.Epoch}, ports.JobChange{To: core.StatusFailed})
			require.NoError(t, err, name)
		}
	})
}

func TestAbandoningAParentReachesItsChildren(t *testing.T) {
	t.Parallel()
	testengine.EachDatabase(t, func(t *testing.T, db tx.Database) {
		for name, status := range map[string]core.Status{"runs": core.StatusStopping, "waits": core.StatusStopped} {
			f := newFamily(t, name, db)
			if name == "runs" {
				f.begin()
			}
			_, err := f.repo.ChangeJob(t.Context(), f.parent, ports.JobChange{To: core.StatusFailed})
			require.NoError(t, err)
			require.NoError(t, f.repo.Abandon(t.Context(), f.parent.ID, ports.By{Actor: "me"}))
			child, err := f.repo.Execution(t.Context(), f.child.ID)
			require.NoError(t, err)
			require.Equal(t, []any{status, true}, []any{child.Status, child.StopRequested}, name)
			entries, err := f.repo.Audit(t.Context(), f.child.ID)
			require.NoError(t, err)
			asked := slices.IndexFunc(entries, func(a ports.AuditEntry) bool { return a.Act == "request stop" })
			require.GreaterOrEqual(t, asked, 0, name)
			require.Equal(t, "me", entries[asked].Actor, name)
		}
	})
}
