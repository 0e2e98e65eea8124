package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/engine/local"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/repository/tasks"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type office struct {
	*testing.T
	db      tx.Database
	repo    taskports.Repository
	service *runtime.TaskService
	catalog *runtime.Catalog
	causes  chan error  // handlers send to it
	free    atomic.Bool // handlers read it
	change  func(c *runtime.Config)

	mu     sync.Mutex
	events []runtime.Event
	seen   []core.Event
}

type work func(o *office, ctx context.Context, t task.Task) (task.Outcome, error)

func eachOffice(t *testing.T, f func(o *office), do work) {
	t.Helper()
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		f(newOffice(t, url, do))
	})
}

func newOffice(t *testing.T, url string, do work) *office {
	t.Helper()
	_, db := testengine.Database(t, url)
	require.NoError(t, repository.New(db, repository.Options{}).Migrate(t.Context()))
	repo, err := tasks.New(db, repository.DefaultPrefix, tasks.Options{})
	require.NoError(t, err)
	return officeOn(t, db, repo.Repository, do)
}

func officeOn(t *testing.T, db tx.Database, repo taskports.Repository, do work) *office {
	t.Helper()
	o := &office{T: t, db: db, repo: repo, causes: make(chan error, 100)}
	var err error
	o.catalog, err = runtime.NewCatalog([]runtime.NamedHandler{{Type: "work", New: func() (task.Handler, error) {
		return task.HandlerFunc(func(ctx context.Context, t task.Task) (task.Outcome, error) { return do(o, ctx, t) }), nil
	}}}, []runtime.NamedDecider{
		named("never", task.DeciderFunc(func(task.Case) task.Decision { return task.MarkDead("never again") })),
		named("at once", task.DeciderFunc(func(task.Case) task.Decision { return task.Retry(0, "at once") })),
	})
	require.NoError(t, err)
	o.service, err = runtime.NewTaskService(runtime.TaskServiceConfig{Repository: repo, Engine: o.engine(), Database: db, Catalog: o.catalog, Actor: "tester"})
	require.NoError(t, err)
	return o
}

func named(name string, d task.Decider) runtime.NamedDecider {
	return runtime.NamedDecider{Name: name, New: func() (task.Decider, error) { return d, nil }}
}

func (o *office) engine() engine.Engine {
	e, err := local.New(local.Config{Database: o.db, Source: runtime.Waiting{Tasks: o.repo, Deciders: o.catalog.Deciders()}, Scan: 20 * time.Millisecond})
	require.NoError(o, err)
	return e
}

func (o *office) worker(name string) (stop func() error) {
	o.Helper()
	config := runtime.Config{
		Slots: 2, Lease: 3 * time.Second, Heartbeat: 200 * time.Millisecond, Poll: 20 * time.Millisecond,
		Tasks: &runtime.Tasks{
			Executions: o.repo, Maintenance: o.repo, Engine: o.engine(), Database: o.db, Catalog: o.catalog, Worker: name,
			Observer: core.ObserverFunc(func(_ context.Context, e core.Event) {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.seen = append(o.seen, e)
			}),
		},
		Report: func(e runtime.Event) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.events = append(o.events, e)
		},
	}
	if o.change != nil {
		o.change(&config)
	}
	w, err := runtime.NewWorker(config)
	require.NoError(o, err)
	ask, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- w.Run(o.Context(), ask) }()
	stop = sync.OnceValue(func() error {
		close(ask)
		return <-ended
	})
	o.Cleanup(func() { _ = stop() }) //nolint:errcheck // a test that cares has called it
	return stop
}

func (o *office) submit(sub task.Submission) *runtime.Accepted {
	o.Helper()
	accepted, err := o.service.Submit(o.Context(), sub)
	require.NoError(o, err)
	return accepted
}

func (o *office) one(payload string) *runtime.Accepted {
	o.Helper()
	return o.submit(task.Submission{Tasks: []task.Spec{{Type: "work", Payload: json.RawMessage(payload)}}})
}

func (o *office) over(id task.GroupID) *task.Group {
	o.Helper()
	ctx, cancel := context.WithTimeoutCause(o.Context(), time.Minute, fmt.Errorf("group %d comes to no end", id))
	defer cancel()
	g, err := o.service.Wait(ctx, id)
	require.NoError(o, err)
	return g
}

func (o *office) task(id task.ID) *task.Task {
	o.Helper()
	t, err := o.service.Task(o.Context(), id)
	require.NoError(o, err)
	return t
}

func (o *office) attempts(id task.ID) []taskports.Attempt {
	o.Helper()
	list, err := o.service.Attempts(o.Context(), id)
	require.NoError(o, err)
	return list
}

func (o *office) until(what string, f func() bool) {
	o.Helper()
	require.Eventually(o, f, 30*time.Second, 5*time.Millisecond, what)
}

func (o *office) happened(what string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events {
		if e.What == what {
			n++
		}
	}
	return n
}
