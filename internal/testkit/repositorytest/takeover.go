package repositorytest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func takeOverTests() []test {
	return []test{
		{"an expired lease is taken over with all unfinished steps", takesOverExpired},
		{"a dead owner is taken over before its lease expired", takesOverDead},
		{"a taken-over owner is refused everywhere", lostOwnerIsRefused},
		{"a taken-over owner's chunk rolls back with its rows", lostChunkRollsBack},
		{"a chunk that is just committing is part of what the new owner finds", committingChunkCounts},
		{"a take-over and a chunk that stores skipped items wait for each other's rows in one order", storingChunkGoesFirst},
		{"a step that is just starting is taken over too", startingStepIsFound},
		{"a lease that is just renewed is not taken over", renewedLeaseIsSeen},
		{"a job that is not restartable is taken over but not launched", takesOverNotRestartable},
		{"of many take-overs at once exactly one wins", oneTakesOver},
	}
}

func takesOverExpired(b *bench) {
	req := b.request("a", 1)
	req.Lease = time.Microsecond
	launched, err := b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	lost := launched.Execution
	b.change(jobRef(lost), ports.JobChange{To: core.StatusStarted})
	_, done := b.step(jobRef(lost), "one", nil)
	b.end(done, ports.StepChange{To: core.StatusCompleted, ExitCode: core.ExitCompleted, Counters: core.Counters{Read: 5}})
	_, open := b.step(jobRef(lost), "two", nil)
	require.NoError(b, b.checkpoint(open, ports.Checkpoint{Counters: core.Counters{Read: 10, Commit: 1}, Position: item.Position(`{"at":10}`)}))

	other := &events{}
	launched, err = b.New(b.Connect(b.T), other).Launch(b.ctx, b.request("b", 1))
	require.NoError(b, err)
	require.True(b, launched.TookOver)
	require.Equal(b, b.execution(lost.ID), launched.Previous)
	p := launched.Previous
	require.Equal(b, core.StatusFailed, p.Status)
	require.Equal(b, "lost owner", p.Error)
	require.Equal(b, lost.Epoch+1, p.Epoch)
	require.Equal(b, owner("a"), p.Owner, "history keeps whose it was")
	require.False(b, p.EndedAt.IsZero())
	require.Equal(b, p.Epoch, launched.Execution.Epoch)
	require.Equal(b, 2, launched.Execution.Attempt)

	steps, err := b.repo.Steps(b.ctx, lost.ID)
	require.NoError(b, err)
	require.Equal(b, core.StatusCompleted, steps[0].Status)
	require.Equal(b, done.Epoch, steps[0].Epoch)
	require.Equal(b, core.StatusFailed, steps[1].Status)
	require.Equal(b, open.Epoch+1, steps[1].Epoch)
	require.Equal(b, "lost owner", steps[1].Error)
	require.False(b, steps[1].EndedAt.IsZero())
	require.Equal(b, item.Position(`{"at":10}`), steps[1].Position)
	require.Equal(b, int64(10), steps[1].Counters.Read)

	require.Equal(b, 1, b.count("%saudit WHERE act = 'take over' AND step_execution_id = 0 AND from_status = 'STARTED' AND to_status = 'FAILED'"))
	require.Equal(b, 1, b.count("%saudit WHERE act = 'take over' AND step_execution_id > 0"))
	var triggers []string
	for _, e := range other.take() {
		triggers = append(triggers, e.Machine+" "+e.Trigger)
	}
	require.Equal(b, []string{"job execution take over", "step execution take over", "job execution launch"}, triggers)

	next, _ := b.restart(launched.Execution)
	again, err := b.repo.StartStep(b.ctx, next, ports.StepStart{Name: "two", Earlier: &steps[1]})
	require.NoError(b, err)
	require.Equal(b, item.Position(`{"at":10}`), again.Position)
	require.Equal(b, open.Epoch+1, again.Epoch)
	require.Equal(b, owner("b"), again.Owner)
}

func (b *bench) restart(exec *core.JobExecution) (ports.JobRef, *core.JobExecution) {
	b.Helper()
	b.change(jobRef(exec), ports.JobChange{To: core.StatusStarted})
	return jobRef(exec), exec
}

func takesOverDead(b *bench) {
	lost := b.launch("a", 1)
	asked := 0
	req := b.request("b", 1)
	req.Dead = func(o core.Owner) bool {
		asked++
		require.Equal(b, owner("a"), o)
		return false
	}
	_, err := b.repo.Launch(b.ctx, req)
	var running *ports.AlreadyRunningError
	require.ErrorAs(b, err, &running)
	require.Positive(b, asked)

	req.Dead = dead
	launched, err := b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	require.True(b, launched.TookOver)
	require.Equal(b, lost.ID, launched.Previous.ID)
}

func lostOwnerIsRefused(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "one", nil)
	req := b.request("b", 1)
	req.Dead = dead
	_, err := b.other().Launch(b.ctx, req)
	require.NoError(b, err)
	before := b.execution(ref.ID)
	stepBefore := b.onlyStep(ref.ID)
	b.events.take()

	_, err = b.repo.Heartbeat(b.ctx, ref, time.Hour)
	require.ErrorIs(b, err, core.ErrLostOwner)
	for _, to := range []core.Status{core.StatusCompleted, core.StatusFailed, core.StatusStopped} {
		answer, err := b.repo.ChangeJob(b.ctx, ref, ports.JobChange{To: to})
		require.Equal(b, core.Rejected, answer)
		require.ErrorIs(b, err, core.ErrLostOwner)
		answer, err = b.repo.EndStep(b.ctx, step, ports.StepChange{To: to})
		require.Equal(b, core.Rejected, answer)
		require.ErrorIs(b, err, core.ErrLostOwner)
		var refused *core.TransitionError
		require.ErrorAs(b, err, &refused)
		require.Equal(b, core.StatusFailed, refused.Current)
	}
	_, err = b.repo.StartStep(b.ctx, ref, ports.StepStart{Name: "two"})
	require.ErrorIs(b, err, core.ErrLostOwner)
	require.ErrorIs(b, b.checkpoint(step, ports.Checkpoint{}), core.ErrLostOwner)
	for _, e := range b.events.take() {
		require.Equal(b, core.Rejected, e.Answer)
	}
	require.Equal(b, before, b.execution(ref.ID))
	require.Equal(b, stepBefore, b.onlyStep(ref.ID))
}

func (b *bench) chunk(ref ports.StepRef, between, after func()) error {
	return tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		if _, err := tx.ConnOf(ctx, b.db).ExecContext(ctx, "INSERT INTO business VALUES (1)"); err != nil {
			return err
		}
		between()
		err := b.repo.Checkpoint(ctx, ref, ports.Checkpoint{Counters: core.Counters{Write: 1, Commit: 1}, Position: item.Position(`1`)})
		after()
		return err
	})
}

func (b *bench) business() int {
	b.Helper()
	var n int
	require.NoError(b, b.db.Conn().QueryRowContext(b.ctx, "SELECT count(*) FROM business").Scan(&n))
	return n
}

func lostChunkRollsBack(b *bench) {
	b.exec("CREATE TABLE business (id bigint) -- %s")
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	other := b.other()
	takeOver := func() {
		req := b.request("b", 1)
		req.Dead = dead
		launched, err := other.Launch(b.ctx, req)
		require.NoError(b, err)
		require.True(b, launched.TookOver)
	}
	between := takeOver
	if b.db.SingleWriter() { // a take-over cannot happen inside the only writer's transaction
		takeOver()
		between = func() {}
	}
	require.ErrorIs(b, b.chunk(step, between, func() {}), core.ErrLostOwner)
	require.Zero(b, b.business(), "the rows of the chunk are gone with it")
	require.Zero(b, b.onlyStep(ref.ID).Counters)
}

type taking struct {
	done     chan struct{}
	launched ports.Launched
	steps    map[string]ports.StepHistory
	err      error
}

func (b *bench) takeOver(repo ports.Repository) *taking {
	t := &taking{done: make(chan struct{})}
	req := b.request("b", 1)
	req.Dead = dead
	go func() {
		defer close(t.done)
		if t.launched, t.err = repo.Launch(b.ctx, req); t.err == nil {
			t.steps, t.err = repo.LastSteps(b.ctx, t.launched.Execution.InstanceID, 0)
		}
	}()
	return t
}

// blocked returns when the take-over waits for a lock, or has ended; with one writer it cannot
// even begin.
func (t *taking) blocked(b *bench) {
	b.Helper()
	for waiting := b.db.SingleWriter(); !waiting; {
		select {
		case <-t.done:
			return
		default:
		}
		require.NoError(b, b.db.Conn().QueryRowContext(b.ctx, testdb.Waiting(b.db.Dialect())).Scan(&waiting))
	}
}

func committingChunkCounts(b *bench) {
	b.exec("CREATE TABLE business (id bigint) -- %s")
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	other := b.other()
	var t *taking
	err := b.chunk(step, func() {}, func() { // the row is locked, and not yet committed
		t = b.takeOver(other)
		t.blocked(b)
	})
	require.NoError(b, err)
	<-t.done
	require.NoError(b, t.err)
	require.True(b, t.launched.TookOver)
	last := t.steps["load"].Last
	require.Equal(b, item.Position(`1`), last.Position)
	require.Equal(b, core.Counters{Write: 1, Commit: 1}, last.Counters)
	require.Equal(b, core.StatusFailed, last.Status)
	require.Equal(b, 1, b.business())
}

// storingChunkGoesFirst: the take-over has locked the job's row, to which the chunk's inserts
// refer.
func storingChunkGoesFirst(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	other := b.other()
	var t *taking
	require.NoError(b, tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		if err := b.repo.Checkpoint(ctx, step, ports.Checkpoint{Counters: core.Counters{Commit: 1}, Position: item.Position(`1`)}); err != nil {
			return err
		}
		t = b.takeOver(other)
		t.blocked(b)
		skipped := []core.SkippedItem{{Phase: core.PhaseRead, Error: "bad"}}
		if err := b.repo.Checkpoint(ctx, step, ports.Checkpoint{Counters: core.Counters{ReadSkip: 1, Commit: 2}, Position: item.Position(`2`), Skipped: skipped}); err != nil {
			return err
		}
		_, err := b.repo.EndStep(ctx, step, ports.StepChange{
			To: core.StatusCompleted, Counters: core.Counters{ReadSkip: 1, Commit: 2},
			Visits: []ports.FlowVisit{{Visit: core.Visit{Element: "next", Ordinal: 2}, Kind: ports.VisitNoop}},
		})
		return err
	}))
	<-t.done
	require.NoError(b, t.err)
	require.True(b, t.launched.TookOver)
	require.Equal(b, core.StatusCompleted, t.steps["load"].Last.Status)
	require.Equal(b, item.Position(`2`), t.steps["load"].Last.Position)
	require.Equal(b, 1, b.count("%sskipped_item"))
	require.Equal(b, 1, b.count("%sflow_visit"))
}

func startingStepIsFound(b *bench) {
	_, ref := b.started("a", 1)
	other := b.other()
	var t *taking
	require.NoError(b, tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		_, err := b.repo.StartStep(ctx, ref, ports.StepStart{Name: "load"})
		require.NoError(b, err)
		t = b.takeOver(other)
		t.blocked(b)
		return nil
	}))
	<-t.done
	require.NoError(b, t.err)
	require.Equal(b, core.StatusFailed, t.steps["load"].Last.Status)
	require.Equal(b, ref.Epoch+1, t.steps["load"].Last.Epoch)
}

func renewedLeaseIsSeen(b *bench) {
	exec, ref := b.started("a", 1)
	b.exec("UPDATE %sjob_execution SET lease_until = created_at")
	other := b.other()
	t := &taking{done: make(chan struct{})}
	require.NoError(b, tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		_, err := b.repo.Heartbeat(ctx, ref, time.Hour) // late, and not yet committed
		require.NoError(b, err)
		req := b.request("b", 1)
		go func() {
			defer close(t.done)
			_, t.err = other.Launch(b.ctx, req)
		}()
		t.blocked(b)
		return nil
	}))
	<-t.done
	var running *ports.AlreadyRunningError
	require.ErrorAs(b, t.err, &running)
	require.Equal(b, exec.ID, running.ExecutionID)
	require.Equal(b, b.execution(exec.ID).LeaseUntil, running.LeaseUntil)
}

func takesOverNotRestartable(b *bench) {
	_, ref := b.started("a", 1)
	req := b.request("b", 1)
	req.Dead, req.Restartable = dead, false
	for range 2 {
		_, err := b.repo.Launch(b.ctx, req)
		require.ErrorIs(b, err, ports.ErrNotRestartable)
		require.Equal(b, core.StatusFailed, b.execution(ref.ID).Status)
	}
	require.Equal(b, 1, b.count("%sjob_execution"))
	require.Equal(b, 1, b.count("%saudit WHERE act = 'take over'"))
}

func oneTakesOver(b *bench) {
	lost := b.launch("lost", 1)
	repos := []ports.Repository{b.repo, b.other()}
	const racers = 10
	errs := make(chan error, racers)
	for i := range racers {
		req := b.request(string(rune('a'+i)), 1)
		req.Dead = func(o core.Owner) bool { return o == owner("lost") }
		go func() {
			_, err := repos[i%len(repos)].Launch(b.ctx, req)
			errs <- err
		}()
	}
	won := 0
	for range racers {
		err := <-errs
		if err == nil {
			won++
			continue
		}
		var running *ports.AlreadyRunningError
		require.ErrorAs(b, err, &running)
		require.NotEqual(b, lost.ID, running.ExecutionID)
	}
	require.Equal(b, 1, won)
	require.Equal(b, lost.Epoch+1, b.execution(lost.ID).Epoch)
}
