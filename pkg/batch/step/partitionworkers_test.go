package step_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
)

type heard struct{ before, after int }

func (h *heard) BeforeStep(_ context.Context, s *core.StepExecution) error {
	h.before++
	return s.Context.Put("begun", true)
}

func (h *heard) AfterStep(context.Context, *core.StepExecution) error { h.after++; return nil }

func remote(t *testing.T, b *bed, h *heard) model.Step {
	t.Helper()
	inner := b.tasklet(func(context.Context, *core.StepContribution) error { return errors.New("it runs on no worker") })
	return partitioned(t, inner, numbered(3), func(c *step.PartitionConfig) {
		c.OnWorkers = true
		c.Listeners = func(context.Context, *model.StepRun) ([]any, error) { return []any{h}, nil }
	}).Step
}

func (b *bed) assign() *ports.Assignment {
	b.T.Helper()
	a, err := b.Repository.AssignPartition(context.Background(), ports.AssignRequest{Owner: core.Owner{Host: "there", PID: 2}, Lease: time.Minute})
	require.NoError(b.T, err)
	return a
}

func (b *bed) endPart(a *ports.Assignment, change ports.StepChange) {
	b.T.Helper()
	_, err := b.Repository.EndStep(context.Background(), ports.StepRef{ID: a.Step.ID, Owner: a.Step.Owner, Epoch: a.Step.Epoch}, change)
	require.NoError(b.T, err)
}

func TestAStepParksAndIsResumedInTheSameAttempt(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		h := &heard{}
		s := remote(t, b, h)
		run := b.run()
		run.Data.MayPark = true
		record, err := b.executor.Execute(t.Context(), s, run)
		require.ErrorIs(t, err, ports.ErrParked)
		require.Equal(t, core.StatusStarted, b.stored(record.ID).Status)
		require.Equal(t, heard{before: 1}, *h)
		_, err = b.Repository.Park(t.Context(), b.ref, ports.Parking{})
		require.NoError(t, err)

		for i := range int64(3) {
			a := b.assign()
			require.Equal(t, record.ID, a.Manager.ID)
			require.NotEmpty(t, a.Shared)
			b.endPart(a, ports.StepChange{To: core.StatusCompleted, ExitCode: "DONE", Counters: core.Counters{Read: i + 1, Write: i}})
		}
		resumed, err := b.Repository.Resume(t.Context(), b.ref.ID, ports.ResumeRequest{Owner: core.Owner{Host: "there", PID: 3}, Lease: time.Minute})
		require.NoError(t, err)
		require.Len(t, resumed.Steps, 1)
		b.job, b.ref = resumed.Execution, ports.JobRef{ID: resumed.Execution.ID, Owner: resumed.Execution.Owner, Epoch: resumed.Execution.Epoch}
		if b.job.Context == nil {
			b.job.Context = core.NewExecutionContext()
		}
		stored := b.do(t.Context(), s, func(run *model.StepRun) {
			run.Data.Planned, run.Data.Resumed, run.Data.MayPark = &resumed.Steps[0], true, true
		})
		require.Equal(t, record.ID, stored.ID)
		require.Equal(t, core.StatusCompleted, stored.Status)
		require.Equal(t, "DONE", stored.ExitCode)
		require.Equal(t, core.Counters{Read: 6, Write: 3}, stored.Counters)
		begun, _ := stored.Context.Get("begun")
		require.Equal(t, true, begun, "what a listener left in the context was kept")
		require.Equal(t, heard{before: 1, after: 1}, *h, "listeners hear of the start once")
		require.Len(t, observed[core.StepStarted](b), 1)
		require.Len(t, observed[core.StepEnded](b), 1)
	})
}

func TestAStepThatCannotParkWaitsForItsPartitions(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		s := remote(t, b, &heard{})
		done := make(chan core.StepExecution, 1)
		go func() { done <- b.do(context.Background(), s) }()
		var first *ports.Assignment
		require.Eventually(t, func() bool { first = b.assign(); return first != nil }, 10*time.Second, 10*time.Millisecond)
		close(b.stop) // two of three are on no worker
		require.Eventually(t, func() bool {
			open, err := b.Repository.OpenParts(context.Background(), first.Manager.ID)
			return err == nil && open == 1
		}, 10*time.Second, 10*time.Millisecond)
		b.endPart(first, ports.StepChange{To: core.StatusCompleted, Counters: core.Counters{Read: 5}})
		record := <-done
		require.Equal(t, core.StatusStopped, record.Status)
		require.EqualValues(t, 5, record.Counters.Read)
	})
}
