package acceptance

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
)

func newRemoteScene(t *testing.T, url string, rows, chunk int) *scene {
	t.Helper()
	s := newPartsScene(t, url, rows, chunk)
	s.write("parts.yaml", strings.Replace(s.read("parts.yaml"), "workers: 3", "remote: true", 1))
	s.env = []string{"SURFIN_LEASE=4s", "SURFIN_HEARTBEAT=500ms"}
	code, out := s.run("migrate")
	require.Zero(t, code, out)
	return s
}

func (s *scene) worker() *process {
	s.t.Helper()
	w := s.start("worker", "--slots", "2", "--poll", "20ms")
	s.t.Cleanup(func() { w.signal(syscall.SIGKILL) })
	return w
}

func (s *scene) partitions(r *repository.Repository) (list []core.StepExecution) {
	s.t.Helper()
	newest, err := r.Executions(context.Background(), ports.ExecutionFilter{Limit: 1})
	require.NoError(s.t, err)
	if len(newest) == 0 {
		return nil
	}
	steps, err := r.Steps(context.Background(), newest[0].ID)
	require.NoError(s.t, err)
	for _, step := range steps {
		if step.Manager != 0 {
			list = append(list, step)
		}
	}
	return list
}

func (s *scene) awaitParts(r *repository.Repository, p *process, n int, wanted func(core.StepExecution) bool) {
	s.t.Helper()
	for {
		found := 0
		for _, part := range s.partitions(r) {
			if wanted(part) {
				found++
			}
		}
		if found >= n {
			return
		}
		require.False(s.t, p.waitFor(10*time.Millisecond), "it ended: %s", p.out.String())
	}
}

func (s *scene) assertOneAttempt(r *repository.Repository) {
	s.t.Helper()
	newest, err := r.Executions(context.Background(), ports.ExecutionFilter{Limit: 1})
	require.NoError(s.t, err)
	require.Equal(s.t, 1, newest[0].Attempt)
	require.Equal(s.t, core.StatusCompleted, newest[0].Status)
	steps, err := r.Steps(context.Background(), newest[0].ID)
	require.NoError(s.t, err)
	seen := map[string]bool{}
	for _, step := range steps {
		require.False(s.t, seen[step.Name], step.Name)
		require.Equal(s.t, core.StatusCompleted, step.Status, step.Name)
		seen[step.Name] = true
	}
}

func TestAParkedExecutionNeedsNoManager(t *testing.T) {
	t.Parallel()
	const rows = 800
	inTurn(t, 1, func(t *testing.T, url string) {
		t.Parallel()
		s := newRemoteScene(t, url, rows, 10)
		db, r := s.open()
		for i, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			s.write("parts.yaml", strings.ReplaceAll(s.read("parts.yaml"), "target", "again")) // of the second round only
			table := []string{"again", "further"}[i]
			s.write("parts.yaml", strings.ReplaceAll(s.read("parts.yaml"), "again", table))
			manager := s.start("run", "parts.yaml", "into="+table)
			id := core.JobExecutionID(i + 1)
			require.Eventually(t, func() bool {
				exec, err := r.Execution(t.Context(), id)
				return err == nil && exec.Status == core.StatusParked
			}, 30*time.Second, 10*time.Millisecond)
			manager.signal(sig)
			worker := s.worker()
			require.Eventually(t, func() bool {
				exec, err := r.Execution(t.Context(), id)
				return err == nil && exec.Status.IsOver()
			}, 60*time.Second, 50*time.Millisecond)
			s.assertOneAttempt(r)
			s.assertParts(db, table, rows, 0, 1, 2, 3, 4, 5, 6, 7)
			worker.signal(syscall.SIGTERM)
			worker.wait()
			if sig == syscall.SIGSTOP {
				manager.signal(syscall.SIGCONT)
				code, out := manager.wait()
				require.Zero(t, code, out)
			}
		}
	})
}

func isAtWork(p core.StepExecution) bool {
	return p.Status == core.StatusStarted && p.Counters.Commit > 0
}

func TestEightPartsRunOnTwoWorkersThoughOneIsKilled(t *testing.T) {
	t.Parallel()
	const rows = 5000
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s := newRemoteScene(t, url, rows, 10)
		db, r := s.open()
		first, second := s.worker(), s.worker()
		manager := s.start("run", "parts.yaml", "into=target")
		s.awaitParts(r, manager, 3, isAtWork)
		first.signal(syscall.SIGKILL)
		code, out := manager.wait()
		require.Zero(t, code, out)
		s.assertParts(db, "target", rows, 0, 1, 2, 3, 4, 5, 6, 7)

		lost := 0
		for _, part := range s.partitions(r) {
			require.Equal(t, core.StatusCompleted, part.Status, part.Name)
			lost += len(part.AssignedFrom)
		}
		require.Positive(t, lost, "the killed worker had some")
		second.signal(syscall.SIGTERM)
		code, out = second.wait()
		require.Zero(t, code, out)
	})
}

func TestAWorkerThatStopsGivesItsPartsBack(t *testing.T) {
	t.Parallel()
	const rows = 1500
	inTurn(t, 1, func(t *testing.T, url string) {
		t.Parallel()
		s := newRemoteScene(t, url, rows, 10)
		db, r := s.open()
		manager := s.start("run", "parts.yaml", "into=target")
		first := s.worker()
		s.awaitParts(r, manager, 2, isAtWork)
		first.signal(syscall.SIGTERM)
		code, out := first.wait()
		require.Zero(t, code, out)
		for _, part := range s.partitions(r) {
			require.Contains(t, []core.Status{core.StatusStarting, core.StatusCompleted}, part.Status, part.Name)
		}
		s.worker()
		code, out = manager.wait()
		require.Zero(t, code, out)
		s.assertParts(db, "target", rows, 0, 1, 2, 3, 4, 5, 6, 7)
	})
}

func TestAStopReachesPartsOnWorkers(t *testing.T) {
	t.Parallel()
	const rows = 1500
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s := newRemoteScene(t, url, rows, 10)
		db, r := s.open()
		s.worker()
		manager := s.start("run", "parts.yaml", "into=target")
		s.awaitParts(r, manager, 2, isAtWork)
		code, out := s.run("stop", "1")
		require.Zero(t, code, out)
		code, out = manager.wait()
		require.Equal(t, 3, code, out)
		for _, part := range s.partitions(r) {
			require.Contains(t, []core.Status{core.StatusStopped, core.StatusCompleted}, part.Status, part.Name)
		}
		s.inFewChunks("parts.yaml")
		code, out = s.run("restart", "1")
		require.Zero(t, code, out)
		s.assertParts(db, "target", rows, 0, 1, 2, 3, 4, 5, 6, 7)
	})
}

func TestEveryRowOfEveryPartIsThereOnceThoughWorkersAndManagersAreKilled(t *testing.T) {
	t.Parallel()
	const rows = 1500
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		kills, random := killsOf(t, 5, 1, 9)
		s := newRemoteScene(t, url, rows, 10)
		db, r := s.open()
		workers := []*process{s.worker(), s.worker()}
		manager := s.start("run", "parts.yaml", "into=target")
		for range kills {
			manager.waitFor(time.Duration(random.IntN(600)) * time.Millisecond)
			if victim := random.IntN(3); victim < 2 {
				workers[victim].signal(syscall.SIGKILL)
				workers[victim] = s.worker()
				continue
			}
			manager.signal(syscall.SIGKILL)
			manager.wait()
			manager = s.start("run", "parts.yaml", "into=target") // refused while it is parked
		}
		require.Eventually(t, func() bool {
			if !manager.waitFor(0) {
				return false
			}
			newest, err := r.Executions(context.Background(), ports.ExecutionFilter{Limit: 1})
			if err == nil && len(newest) > 0 && newest[0].Status == core.StatusCompleted {
				return true
			}
			manager = s.start("run", "parts.yaml", "into=target") // another attempt, where a part lost its workers too often
			return false
		}, 2*time.Minute, 100*time.Millisecond)
		s.assertParts(db, "target", rows, 0, 1, 2, 3, 4, 5, 6, 7)
	})
}

// On PostgreSQL a frozen process blocks no other (rule L7).
func TestAFrozenWorkerLosesItsPartsAndCommitsNothingWhenItWakes(t *testing.T) {
	t.Parallel()
	const rows = 5000 // so that a slow test still freezes it at work
	s := newRemoteScene(t, testdb.Postgres(t), rows, 10)
	db, r := s.open()
	first := s.worker()
	manager := s.start("run", "parts.yaml", "into=target")
	s.awaitParts(r, manager, 2, isAtWork)
	first.signal(syscall.SIGSTOP)
	s.worker()
	s.awaitParts(r, manager, 2, func(p core.StepExecution) bool { return len(p.AssignedFrom) > 0 })
	first.signal(syscall.SIGCONT)
	code, out := manager.wait()
	require.Zero(t, code, out)
	s.assertParts(db, "target", rows, 0, 1, 2, 3, 4, 5, 6, 7)
}
