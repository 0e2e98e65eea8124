package job_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
)

// stopper requests a stop of an execution, as another process does, at one of its events.
type stopper struct {
	*weather
	mu      sync.Mutex
	events  int // until the request
	asked   bool
	root    core.JobExecutionID
	done    chan struct{} // closed when the request is answered
	stopped bool          // the request was accepted
}

func (s *stopper) Observe(_ context.Context, e core.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if started, is := e.(core.JobStarted); is && s.root == 0 {
		s.root = started.Execution.ID
	}
	if s.events--; s.events >= 0 || s.asked || s.root == 0 {
		return
	}
	s.asked = true
	go s.ask(s.root)
}

func (s *stopper) ask(id core.JobExecutionID) {
	defer close(s.done)
	_, err := s.Repository.RequestStop(context.Background(), id, ports.By{Actor: "test"})
	s.stopped = err == nil
}

// launch runs the job in a process that learns of a stop only when it writes: its heartbeats are too
// rare.
func (s *stopper) launch(j *model.Job) *core.JobExecution {
	launcher, err := job.NewLauncher(job.Config{
		Repository: s.Repository.Ports(), Executor: step.NewSimpleStepExecutor(s.Repository, s.Database.Name(), s), Observer: s,
		Lease: time.Hour, Heartbeat: 10 * time.Minute,
	})
	require.NoError(s.T, err)
	exec, err := launcher.Run(s.T.Context(), j, core.Parameters{}, nil)
	require.NoError(s.T, err)
	return exec
}

// Rule L13.
func TestAfterAStopIsAnsweredNothingStarts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("CREATE TABLE done (job text NOT NULL, step text NOT NULL)")
		stops := 0
		for seed := range flowsOn(url, 30, 10, 10) {
			was, err := stopCase(t, e, uint64(seed))
			require.NoError(t, err, "seed %d", seed)
			if was {
				stops++
			}
		}
		t.Logf("%d executions were stopped", stops)
	})
}

func stopCase(t *testing.T, e *testengine.Engine, seed uint64) (was bool, err error) {
	calm := &weather{Engine: e, name: fmt.Sprintf("calm%d", seed), random: rand.New(rand.NewPCG(seed, 0))}
	if exec, err := calm.launch(calm.job()); err != nil || exec.Status != core.StatusCompleted {
		return false, fmt.Errorf("the calm run ended %v: %w", exec, err)
	}
	w := &weather{Engine: e, name: fmt.Sprintf("stopped%d", seed), random: rand.New(rand.NewPCG(seed, 0))}
	j := w.job()
	s := &stopper{weather: w, events: rand.New(rand.NewPCG(seed, 1)).IntN(40), done: make(chan struct{})}
	exec := s.launch(j)
	if s.asked {
		<-s.done
	}
	if s.stopped {
		if err := s.check(exec); err != nil {
			return true, fmt.Errorf("flow %s: %w", describe(j.Flow), err)
		}
	}
	again := &stopper{weather: w, events: 1 << 30}
	if exec.Status != core.StatusCompleted {
		if exec = again.launch(j); exec.Status != core.StatusCompleted {
			return s.stopped, fmt.Errorf("flow %s: the restart is %s: %s", describe(j.Flow), exec.Status, exec.Error)
		}
	}
	if want, got := calm.strict(t), w.strict(t); !slices.Equal(want, got) {
		return s.stopped, fmt.Errorf("flow %s\n%s", describe(j.Flow), difference(want, got))
	}
	return s.stopped, nil
}

// check reports violations after a stop. The audit is in the order of the moves of an execution: both a
// request and a start lock its row. A child that began after the request was launched with it.
func (s *stopper) check(exec *core.JobExecution) error {
	if exec.Status != core.StatusStopped && exec.Status != core.StatusCompleted {
		return fmt.Errorf("the execution is %s: %s", exec.Status, exec.Error)
	}
	late := s.Ints(fmt.Sprintf(`SELECT a.step_execution_id FROM surfin_audit a JOIN surfin_job_execution j ON j.id = a.job_execution_id
		JOIN surfin_step_execution s ON s.id = a.step_execution_id LEFT JOIN surfin_step_execution m ON m.id = s.manager_id
		WHERE (j.id = %[1]d OR j.parent_id >= %[1]d) AND a.act IN ('start step', 'begin step') AND j.stop_requested
		AND s.flow <> 'finally' AND (m.flow IS NULL OR m.flow <> 'finally') AND s.error_text NOT LIKE 'rolled back with group%%'
		AND a.id > COALESCE((SELECT min(r.id) FROM surfin_audit r WHERE r.job_execution_id = a.job_execution_id AND r.act = 'request stop'), 0)`, exec.ID))
	if len(late) > 0 {
		return fmt.Errorf("step executions %v started after the stop was answered", late)
	}
	return nil
}
