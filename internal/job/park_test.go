package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type numberedParts int

func (n numberedParts) Partition(context.Context, *core.View) ([]core.Partition, error) {
	parts := make([]core.Partition, n)
	for i := range parts {
		parts[i] = core.Partition{Name: fmt.Sprint("p", i), Context: core.NewExecutionContext()}
	}
	return parts, nil
}

type jobHeard struct{ before, after int }

func (h *jobHeard) BeforeJob(context.Context, *core.JobExecution) error { h.before++; return nil }
func (h *jobHeard) AfterJob(context.Context, *core.JobExecution) error  { h.after++; return nil }

func remoteStep(t *testing.T, e *testengine.Engine, name string) *model.StepElement {
	t.Helper()
	inner := e.Tasklet(name, tx.Attr{}, func(context.Context, *core.StepContribution) error { return nil })
	s, err := step.NewPartitioned(step.PartitionConfig{
		Step: inner.Step, OnWorkers: true,
		Partitioner: func(context.Context, *model.StepRun) (core.Partitioner, error) { return numberedParts(3), nil },
	})
	require.NoError(t, err)
	return &model.StepElement{Step: s}
}

// parking reports when an execution was parked: a worker that polls the database takes time from the
// process that it waits for.
type parking struct {
	ports.Parks
	parked chan core.JobExecutionID
	// replies, unless nil, delays the replies until it is closed.
	replies <-chan struct{}
}

func (p *parking) Park(ctx context.Context, ref ports.JobRef, request ports.Parking) (core.Answer, error) {
	a, err := p.Parks.Park(ctx, ref, request)
	if err == nil && a == core.Applied {
		p.parked <- ref.ID
		if p.replies != nil {
			<-p.replies
		}
	}
	return a, err
}

func parkingScript(t *testing.T, url string) (*script, <-chan core.JobExecutionID) {
	t.Helper()
	p := &parking{parked: make(chan core.JobExecutionID, 10)}
	e := testengine.New(t, url, func(c *job.Config) {
		p.Parks, c.Repository.Parks = c.Repository.Parks, p
	})
	return &script{e: e}, p.parked
}

func endParts(ctx context.Context, e *testengine.Engine, parked <-chan core.JobExecutionID, change func(core.StepExecution) ports.StepChange) <-chan error {
	done := make(chan error, 1)
	go func() {
		for {
			select {
			case <-ctx.Done():
				done <- nil
				return
			case <-parked:
			}
			if err := endOpenParts(ctx, e, change); err != nil {
				done <- err
				return
			}
		}
	}()
	return done
}

func endOpenParts(ctx context.Context, e *testengine.Engine, change func(core.StepExecution) ports.StepChange) error {
	worker := core.Owner{Host: "there", PID: 2}
	for {
		a, err := e.Repository.AssignPartition(ctx, ports.AssignRequest{Owner: worker, Lease: time.Minute})
		if ctx.Err() != nil || err == nil && a == nil {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = e.Repository.EndStep(ctx, ports.StepRef{ID: a.Step.ID, Owner: worker, Epoch: a.Step.Epoch}, change(a.Step))
		if err != nil && !errors.Is(err, core.ErrLostOwner) {
			return err
		}
	}
}

func TestAResumeIsNoRestart(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, parked := parkingScript(t, url)
		s.failing("bad")
		ctx, cancel := context.WithCancel(t.Context())
		worker := endParts(ctx, s.e, parked, func(core.StepExecution) ports.StepChange {
			return ports.StepChange{To: core.StatusCompleted, ExitCode: core.ExitCompleted, Counters: core.Counters{Read: 2}}
		})
		h := &jobHeard{}
		one := s.step("one")
		one.AllowStartIfComplete = true
		decided := 0
		decision := &model.DecisionElement{Name: "which", Decide: func(context.Context, *core.View) (string, error) {
			decided++
			return "GO", nil
		}, Next: []model.Transition{{Pattern: "GO", Target: model.Target{Kind: model.TargetElement, Name: "bad"}}}}
		one.Next = []model.Transition{to("which")}
		bad := s.step("bad", on(core.ExitFailed, model.TargetElement, func(t *model.Target) { t.Name = "first" }))
		first, second, last := remoteStep(t, s.e, "first"), remoteStep(t, s.e, "second"), s.step("last")
		limit := 1
		first.Next, first.StartLimit = []model.Transition{to("second")}, &limit
		second.Next = []model.Transition{to("last")}
		j := testengine.Job("parks", one)
		j.Flow.Elements = []model.Element{one, decision, bad, first, second, last}
		j.Listeners = func(context.Context, *core.View) ([]any, error) { return []any{h}, nil }

		exec, ran := s.run(j)
		cancel()
		require.NoError(t, <-worker)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []string{"one", "bad", "last"}, ran)
		require.Equal(t, 1, decided)
		require.Equal(t, jobHeard{before: 1, after: 1}, *h)
		require.EqualValues(t, 3, exec.Epoch, "it was resumed twice")
		require.Equal(t, 1, exec.Attempt)
		require.EqualValues(t, 6, s.e.Step(exec, "second").Counters.Read)
		counts := map[string]int{}
		for _, event := range s.e.Events() {
			switch event := event.(type) {
			case core.StepStarted:
				counts["start "+event.Step.Name]++
			case core.StepEnded:
				counts["end "+event.Step.Name]++
			case core.JobStarted, core.JobEnded, core.Decided, core.StepPassed:
				counts[fmt.Sprintf("%T", event)]++
			}
		}
		require.Equal(t, map[string]int{
			"start one": 1, "end one": 1, "start bad": 1, "end bad": 1, "start first": 1, "end first": 1,
			"start second": 1, "end second": 1, "start last": 1, "end last": 1,
			"core.JobStarted": 1, "core.JobEnded": 1, "core.Decided": 1,
		}, counts)
	})
}

func TestAParkedExecutionIsStopped(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, parked := parkingScript(t, url)
		j := testengine.Job("stops", remoteStep(t, s.e, "parts"), s.step("last"))
		asked := make(chan error, 1)
		go func() {
			_, err := s.e.Repository.RequestStop(t.Context(), <-parked, ports.By{Actor: "test"})
			asked <- err
		}()
		exec, ran := s.run(j)
		require.NoError(t, <-asked)
		require.Equal(t, core.StatusStopped, exec.Status)
		require.Empty(t, ran)
		require.Equal(t, core.StatusStopped, s.e.Step(exec, "parts").Status)

		ctx, cancel := context.WithCancel(t.Context())
		worker := endParts(ctx, s.e, parked, func(core.StepExecution) ports.StepChange {
			return ports.StepChange{To: core.StatusCompleted, Counters: core.Counters{Read: 2}}
		})
		exec, ran = s.run(j)
		cancel()
		require.NoError(t, <-worker)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []string{"last"}, ran)
		require.EqualValues(t, 6, s.e.Step(exec, "parts").Total().Read)
	})
}

// Rule P5.
func TestWhoLeavesBeforeTheReplyOfParkingLeavesItParked(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		parks := &parking{parked: make(chan core.JobExecutionID)}
		e := testengine.New(t, url, func(c *job.Config) { parks.Parks, c.Repository.Parks = c.Repository.Parks, parks })
		left := make(chan struct{})
		parks.replies = left
		running, err := e.Launcher.Start(t.Context(), testengine.Job("leaves", remoteStep(t, e, "parts")), core.Parameters{})
		require.NoError(t, err)
		<-parks.parked
		running.Leave()
		close(left)
		_, err = running.Wait()
		require.ErrorIs(t, err, job.ErrLeft)
		exec, err := e.Repository.Execution(t.Context(), running.Execution().ID)
		require.NoError(t, err)
		require.Equal(t, core.StatusParked, exec.Status)
		require.False(t, exec.StopRequested)
	})
}

// upTo reads the numbers from 1 to last.
type upTo struct {
	last, at int64
	heed     func(n int64)
}

func (r *upTo) Open(_ context.Context, at item.Position) error {
	if len(at) == 0 {
		return nil
	}
	return json.Unmarshal(at, &r.at)
}

func (r *upTo) Read(context.Context) (int64, error) {
	if r.at == r.last {
		return 0, io.EOF
	}
	r.at++
	r.heed(r.at)
	return r.at, nil
}

func (r *upTo) Position() (item.Position, error) { return json.Marshal(r.at) }

type unchanged struct{}

func (unchanged) Process(_ context.Context, n int64) (int64, error) { return n, nil }

type inserting struct{ e *testengine.Engine }

func (w inserting) Write(ctx context.Context, items []int64) error {
	for _, n := range items {
		if _, err := tx.ConnOf(ctx, w.e.Database).ExecContext(ctx, fmt.Sprintf("INSERT INTO got (n) VALUES (%d)", n)); err != nil {
			return err
		}
	}
	return nil
}

func TestAResumedExecutionIsGivenBack(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, parked := parkingScript(t, url)
		s.e.Exec("CREATE TABLE got (n bigint NOT NULL)")
		release := make(chan struct{})
		once := sync.OnceFunc(func() { close(release) })
		long := testengine.Chunk(s.e, "long", 2, func() (item.ItemReader[int64], item.ItemProcessor[int64, int64], item.ItemWriter[int64]) {
			return &upTo{last: 10, heed: func(n int64) {
				if n == 5 {
					once()
				}
			}}, unchanged{}, inserting{s.e}
		})
		h := &jobHeard{}
		j := testengine.Job("given", remoteStep(t, s.e, "parts"), long, s.step("last"))
		j.Listeners = func(context.Context, *core.View) ([]any, error) { return []any{h}, nil }
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		launched, gone := context.WithCancel(t.Context())
		worker := endParts(ctx, s.e, parked, func(core.StepExecution) ports.StepChange {
			gone()
			return ports.StepChange{To: core.StatusCompleted, ExitCode: core.ExitCompleted}
		})
		exec, err := s.e.Launcher.Run(launched, j, core.Parameters{}, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.Eventually(t, func() bool {
			ids, err := s.e.Repository.Resumable(t.Context(), "", 1, nil)
			return err == nil && len(ids) == 1
		}, time.Minute, 20*time.Millisecond)
		cancel()
		require.NoError(t, <-worker)

		now := make(chan struct{})
		close(now)
		id := exec.ID
		for _, o := range []job.Resumption{{Release: now}, {Release: release}} {
			exec, err = s.e.Launcher.Resume(t.Context(), j, id, o)
			require.NoError(t, err)
			require.Equal(t, core.StatusParked, exec.Status)
		}
		given := s.e.Step(exec, "long")
		require.Equal(t, core.StatusParked, given.Status)
		require.EqualValues(t, 6, given.Counters.Write)
		exec, err = s.e.Launcher.Resume(t.Context(), j, id, job.Resumption{})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, 1, exec.Attempt)
		require.EqualValues(t, 4, exec.Epoch)
		require.Equal(t, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, s.e.Ints("SELECT n FROM got ORDER BY n"))
		require.EqualValues(t, 10, s.e.Step(exec, "long").Counters.Write)
		require.Equal(t, jobHeard{before: 1, after: 1}, *h)
		starts := 0
		for _, event := range s.e.Events() {
			if started, ok := event.(core.StepStarted); ok && started.Step.Name == "long" {
				starts++
			}
		}
		require.Equal(t, 1, starts)
	})
}
