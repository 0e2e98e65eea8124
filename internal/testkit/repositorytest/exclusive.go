package repositorytest

import (
	"errors"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (b *bench) keyed(name string, day int64, key core.ExclusiveKey) ports.LaunchRequest {
	b.Helper()
	req := b.request(name, day)
	req.Exclusive = key
	return req
}

func (b *bench) excluded(req ports.LaunchRequest) ports.ExclusiveError {
	b.Helper()
	_, err := b.repo.Launch(b.ctx, req)
	var refused *ports.ExclusiveError
	require.ErrorAs(b, err, &refused)
	said := b.repo.CheckExclusive(b.ctx, req.JobName, req.Exclusive, req.Dead)
	require.Equal(b, refused, said, "what predicts is what refuses")
	return *refused
}

func oneOfAKey(b *bench) {
	north := core.ExclusiveBy("north")
	first, err := b.repo.Launch(b.ctx, b.keyed("a", 1, north))
	require.NoError(b, err)
	require.Equal(b, north, first.Execution.Exclusive)
	require.Equal(b, north, b.execution(first.Execution.ID).Exclusive)

	refused := b.excluded(b.keyed("b", 2, north))
	require.Equal(b, ports.ExclusiveError{JobName: "load", Key: north, Running: ports.AlreadyRunningError{
		ExecutionID: first.Execution.ID, JobName: "load", Owner: owner("a"), LeaseUntil: first.Execution.LeaseUntil,
	}}, refused)
	require.Equal(b, 1, b.count("%sjob_execution"))
	require.Equal(b, 1, b.count("%sjob_instance"), "a refusal leaves nothing")

	_, err = b.repo.Launch(b.ctx, b.keyed("b", 1, north))
	require.ErrorAs(b, err, new(*ports.AlreadyRunningError))

	other := b.keyed("c", 5, north)
	other.JobName = "other"
	for _, req := range []ports.LaunchRequest{b.keyed("c", 3, core.ExclusiveJob), b.keyed("c", 4, ""), b.keyed("c", 6, ""), other} {
		require.NoError(b, b.repo.CheckExclusive(b.ctx, req.JobName, req.Exclusive, nil))
		_, err := b.repo.Launch(b.ctx, req)
		require.NoError(b, err)
	}
}

func keyIsFree(b *bench) {
	for day, end := range []func(e *core.JobExecution){
		func(e *core.JobExecution) {
			b.change(jobRef(e), ports.JobChange{To: core.StatusCompleted, ExitCode: core.ExitCompleted})
		},
		func(e *core.JobExecution) {
			b.change(jobRef(e), ports.JobChange{To: core.StatusFailed, ExitCode: core.ExitFailed})
		},
		func(e *core.JobExecution) { // a stop was requested, then it was abandoned
			_, err := b.repo.RequestStop(b.ctx, e.ID, ports.By{Actor: "test"})
			require.NoError(b, err)
			b.excluded(b.keyed("c", 100, core.ExclusiveJob))
			require.NoError(b, b.repo.Abandon(b.ctx, e.ID, ports.By{Actor: "op"}))
		},
		func(*core.JobExecution) {
			ended, err := b.repo.Recover(b.ctx, "op", dead)
			require.NoError(b, err)
			require.Len(b, ended, 1)
		},
		func(e *core.JobExecution) { // a parked one is active, and has no owner
			_, err := b.repo.Park(b.ctx, jobRef(e), ports.Parking{})
			require.NoError(b, err)
			b.excluded(b.keyed("c", 100, core.ExclusiveJob))
			resumed, err := b.resume("d", e.ID)
			require.NoError(b, err)
			b.excluded(b.keyed("c", 100, core.ExclusiveJob))
			b.change(jobRef(resumed.Execution), ports.JobChange{To: core.StatusCompleted, ExitCode: core.ExitCompleted})
		},
	} {
		launched, err := b.repo.Launch(b.ctx, b.keyed("a", int64(day), core.ExclusiveJob))
		require.NoError(b, err, day)
		b.change(jobRef(launched.Execution), ports.JobChange{To: core.StatusStarted})
		b.excluded(b.keyed("b", 100, core.ExclusiveJob))
		end(launched.Execution)
	}
}

func lostKeyIsTakenOver(b *bench) {
	lost, err := b.repo.Launch(b.ctx, b.keyed("a", 1, core.ExclusiveJob))
	require.NoError(b, err)
	b.change(jobRef(lost.Execution), ports.JobChange{To: core.StatusStarted})
	step, ref := b.step(jobRef(lost.Execution), "load", nil)

	req := b.keyed("b", 2, core.ExclusiveJob)
	b.excluded(req)
	req.Dead = func(o core.Owner) bool { return o == owner("a") }
	require.NoError(b, b.repo.CheckExclusive(b.ctx, "load", core.ExclusiveJob, req.Dead))
	b.events.take()
	next, err := b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	require.Nil(b, next.Previous)
	ended := b.execution(lost.Execution.ID)
	require.Equal(b, core.StatusFailed, ended.Status)
	require.Equal(b, ports.LostOwner, ended.Error)
	require.Equal(b, core.StatusFailed, b.onlyStep(ended.ID).Status)
	require.ErrorIs(b, b.checkpoint(ref, ports.Checkpoint{}), core.ErrLostOwner, "step %d", step.ID)
	audit, err := b.repo.Audit(b.ctx, ended.ID)
	require.NoError(b, err)
	require.Equal(b, "take over", audit[len(audit)-1].Act)
	require.NotEmpty(b, b.events.take())

	b.excluded(b.keyed("a", 1, core.ExclusiveJob))
	b.change(jobRef(next.Execution), ports.JobChange{To: core.StatusStarted})
	b.change(jobRef(next.Execution), ports.JobChange{To: core.StatusCompleted, ExitCode: core.ExitCompleted})
	again, err := b.repo.Launch(b.ctx, b.keyed("a", 1, core.ExclusiveJob))
	require.NoError(b, err)
	require.Equal(b, 2, again.Execution.Attempt)
}

func oneOfAKeyWins(b *bench) {
	const launchers, rounds = 6, 15
	var running sync.Mutex // held by the running execution: a second one would not get it
	var group sync.WaitGroup
	errs, won := make([]error, launchers), make([]int, launchers)
	for n := range launchers {
		repo := b.New(b.Connect(b.T), nil)
		name := string(rune('a' + n))
		requests := make([]ports.LaunchRequest, rounds)
		for i := range requests {
			requests[i] = b.keyed(name, int64(n*rounds+i), core.ExclusiveJob)
			requests[i].Dead = func(o core.Owner) bool { return o.Boot == "dead" }
		}
		group.Go(func() {
			for i := 0; i < rounds && errs[n] == nil; {
				req := requests[i]
				if i%3 == 2 {
					req.Owner.Boot = "dead" // lost as soon as it runs
				}
				launched, err := repo.Launch(b.ctx, req)
				var refused *ports.ExclusiveError
				switch {
				case errors.As(err, &refused): // it launches again
				case err != nil:
					errs[n] = err
				case req.Owner.Boot == "dead":
					won[n]++
					i++
				case !running.TryLock():
					errs[n] = errors.New("two executions run at once")
				default:
					won[n]++
					i++
					_, err := repo.ChangeJob(b.ctx, jobRef(launched.Execution), ports.JobChange{To: core.StatusStarted})
					if running.Unlock(); err == nil {
						_, err = repo.ChangeJob(b.ctx, jobRef(launched.Execution), ports.JobChange{To: core.StatusCompleted, ExitCode: core.ExitCompleted})
					}
					errs[n] = err
				}
			}
		})
	}
	group.Wait()
	require.NoError(b, errors.Join(errs...))
	for _, n := range won {
		require.Equal(b, rounds, n)
	}
	require.LessOrEqual(b, b.count("%sjob_execution WHERE active = 1"), 1)
}
