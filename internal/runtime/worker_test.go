package runtime_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/engine/local"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

var errLook = errors.New("the database is not there")

type unreliable struct {
	ports.Assignments
	looks, failures atomic.Int64
	fail            func(look int64) bool
}

func (u *unreliable) AssignPartition(ctx context.Context, req ports.AssignRequest) (*ports.Assignment, error) {
	if u.fail(u.looks.Add(1)) {
		u.failures.Add(1)
		return nil, errLook
	}
	return u.Assignments.AssignPartition(ctx, req)
}

type workplace struct {
	*testengine.Engine
	job    *model.Job
	exec   core.JobExecution
	config runtime.Config
	parts  runtime.Parts

	mu     sync.Mutex
	events []runtime.Event
}

func newWorkplace(t *testing.T, url string, parts int, work core.TaskletFunc) *workplace {
	t.Helper()
	e := testengine.New(t, url)
	return workplaceOn(t, e, deliverer(t, e), parts, work)
}

func workplaceOn(t *testing.T, e *testengine.Engine, deliveries engine.Engine, parts int, work core.TaskletFunc) *workplace {
	t.Helper()
	return workplaceOf(t, e, deliveries, parts, e.Tasklet("parts", tx.Attr{}, work).Step)
}

func workplaceOf(t *testing.T, e *testengine.Engine, deliveries engine.Engine, parts int, inner model.Step) *workplace {
	t.Helper()
	p := &workplace{Engine: e}
	outer, err := step.NewPartitioned(step.PartitionConfig{
		Step: inner, OnWorkers: true,
		Partitioner: func(context.Context, *model.StepRun) (core.Partitioner, error) { return partsOf(parts), nil },
	})
	require.NoError(t, err)
	p.job = testengine.Job("busy", &model.StepElement{Step: outer})
	running, err := p.Launcher.Start(t.Context(), p.job, core.Parameters{})
	require.NoError(t, err)
	p.exec = running.Execution()
	require.Eventually(t, func() bool { return p.status() == core.StatusParked }, 10*time.Second, time.Millisecond)
	running.Cancel(errors.New("its process ends"))
	_, err = running.Wait()
	require.Error(t, err)
	p.parts = runtime.Parts{
		Repository: p.Repository.Ports(), Engine: deliveries, Owner: core.Owner{Host: "here", PID: 7},
		Job: func(context.Context, core.JobExecution) (*model.Job, error) { return p.job, nil },
		Executor: func(transitions ports.Transitions) model.StepExecutor {
			return step.NewSimpleStepExecutor(transitions, p.Database.Name(), nil)
		},
		Resume: func(ctx context.Context, j *model.Job, id core.JobExecutionID, stop <-chan struct{}) error {
			_, err := p.Launcher.Resume(ctx, j, id, job.Resumption{Release: stop})
			return err
		},
	}
	p.config = runtime.Config{
		Lease: time.Second, Heartbeat: 100 * time.Millisecond, Poll: 10 * time.Millisecond, Parts: &p.parts,
		Report: func(e runtime.Event) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.events = append(p.events, e)
		},
	}
	return p
}

func deliverer(t testing.TB, e *testengine.Engine) engine.Engine {
	t.Helper()
	made, err := local.New(local.Config{Database: e.Database, Source: runtime.Waiting{Parts: e.Repository}, Scan: 10 * time.Millisecond})
	require.NoError(t, err)
	return made
}

func (p *workplace) status() core.Status {
	exec, err := p.Repository.Execution(p.T.Context(), p.exec.ID)
	require.NoError(p.T, err)
	return exec.Status
}

func (p *workplace) happened(what string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.What == what {
			n++
		}
	}
	return n
}

// looksFailed counts the reports of failed polls: a busy machine may lose a lease too.
func (p *workplace) looksFailed() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.What == "failed" && errors.Is(e.Err, errLook) {
			n++
		}
	}
	return n
}

func (p *workplace) work() error {
	w, err := runtime.NewWorker(p.config)
	require.NoError(p.T, err)
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- w.Run(p.T.Context(), stop) }()
	for {
		select {
		case err := <-ended:
			return err
		case <-time.After(5 * time.Millisecond):
		}
		if p.status().IsOver() {
			close(stop)
			return <-ended
		}
	}
}

func TestAWorkerOutlivesAFailedLookAfterALongPart(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		p := newWorkplace(t, url, 3, func(context.Context, *core.StepContribution) error {
			time.Sleep(1200 * time.Millisecond)
			return nil
		})
		u := &unreliable{Assignments: p.Repository, fail: func(look int64) bool { return look == 2 || look == 4 }} // before the second and the third part
		p.parts.Repository.Assignments = u
		require.NoError(t, p.work())
		require.EqualValues(t, 2, u.failures.Load())
		require.Equal(t, core.StatusCompleted, p.status())
		require.Equal(t, 2, p.looksFailed())
	})
}

func TestAWorkerEndsWhenItsLooksFailForLongerThanItsLease(t *testing.T) {
	t.Parallel()
	p := newWorkplace(t, testdb.SQLite(t), 1, nil)
	u := &unreliable{Assignments: p.Repository, fail: func(int64) bool { return true }}
	p.parts.Repository.Assignments = u
	begin := time.Now()
	require.ErrorIs(t, p.work(), errLook)
	require.Greater(t, time.Since(begin), p.config.Lease)
	require.Greater(t, u.failures.Load(), int64(2))
}

func TestWhatAWorkerCannotBuildItTriesAgain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		p := newWorkplace(t, url, 2, func(context.Context, *core.StepContribution) error { return nil })
		var missing atomic.Bool
		missing.Store(true)
		p.config.Slots = 2
		p.parts.Job = func(context.Context, core.JobExecution) (*model.Job, error) {
			if missing.Load() {
				return nil, errors.New("no file parts.csv")
			}
			return p.job, nil
		}
		ended := make(chan error, 1)
		go func() { ended <- p.work() }()

		refused := func() (texts []string) {
			steps, err := p.Repository.Steps(t.Context(), p.exec.ID)
			require.NoError(t, err)
			for _, s := range steps {
				if s.Manager != 0 && s.Status == core.StatusStarting {
					texts = append(texts, s.Error)
				}
			}
			return texts
		}
		const want = "refused by worker 7 on here: build job busy: no file parts.csv"
		require.Eventually(t, func() bool { return strings.Contains(strings.Join(refused(), "\n"), want) }, 5*time.Second, time.Millisecond)
		require.Eventually(t, func() bool { return p.happened("refused") >= 3 }, 5*time.Second, 10*time.Millisecond)
		require.LessOrEqual(t, p.happened("refused"), 6, "with pauses")
		missing.Store(false)
		require.NoError(t, <-ended)
		require.Equal(t, core.StatusCompleted, p.status())
		steps, err := p.Repository.Steps(t.Context(), p.exec.ID)
		require.NoError(t, err)
		for _, s := range steps {
			require.Empty(t, s.Error, s.Name)
		}
	})
}

func TestAnExecutionThatCannotBeBuiltIsResumedLater(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		p := newWorkplace(t, url, 1, func(context.Context, *core.StepContribution) error { return nil })
		var builds atomic.Int64
		p.parts.Job = func(context.Context, core.JobExecution) (*model.Job, error) {
			if n := builds.Add(1); n == 2 || n == 3 {
				return nil, errors.New("no file child.yaml")
			}
			return p.job, nil
		}
		ended := make(chan error, 1)
		go func() { ended <- p.work() }()
		require.Eventually(t, func() bool {
			exec, err := p.Repository.Execution(t.Context(), p.exec.ID)
			return err == nil && exec.Error == "refused by worker 7 on here: build job busy: no file child.yaml"
		}, 5*time.Second, time.Millisecond)
		require.NoError(t, <-ended)
		exec, err := p.Repository.Execution(t.Context(), p.exec.ID)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status)
		require.Empty(t, exec.Error)
		require.EqualValues(t, 4, builds.Load())
		require.Equal(t, 2, p.happened("refused"))
		require.Equal(t, 1, p.happened("resumed"))
	})
}
