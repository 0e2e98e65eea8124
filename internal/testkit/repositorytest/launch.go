package repositorytest

import (
	"errors"
	"math"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func launchTests() []test {
	return []test{
		{"a launch is a record that can be read again", launchIsRead},
		{"parameters of every type survive the database", parametersSurvive},
		{"other identifying parameters are another instance and others are not", instanceIdentity},
		{"a complete instance is refused", completeIsRefused},
		{"a running instance is refused and its owner named", runningIsRefused},
		{"a failed or stopped instance is attempted again", attemptsAgain},
		{"a job that is not restartable is refused after a failure", notRestartable},
		{"an abandoned or unknown execution is not followed by another", abandonedOrUnknown},
		{"a COMMIT whose reply was lost is settled where a checkpoint tells what it did, and nothing else is", settled},
		{"a launch whose reply was lost finds its own execution", launchedAgain},
		{"of many launches at once exactly one wins", oneWins},
		{"the unique active execution refuses what the lock would let pass", uniqueActive},
		{"of the instances with one key one runs", oneOfAKey},
		{"a key is free when its execution is over, whatever ended it", keyIsFree},
		{"a lost execution with the key is taken over by a launch of another instance", lostKeyIsTakenOver},
		{"of many launches with one key at once exactly one wins", oneOfAKeyWins},
		{"a launch without name or lease is refused", launchIsChecked},
	}
}

func launchIsRead(b *bench) {
	before := time.Now()
	launched, err := b.repo.Launch(b.ctx, b.request("a", 1))
	require.NoError(b, err)
	require.Nil(b, launched.Previous)
	require.False(b, launched.TookOver)

	exec := launched.Execution
	require.Equal(b, core.StatusStarting, exec.Status)
	require.Equal(b, 1, exec.Attempt)
	require.Equal(b, int64(1), exec.Epoch)
	require.Equal(b, owner("a"), exec.Owner)
	require.Equal(b, time.Hour, exec.LeaseUntil.Sub(exec.CreatedAt).Round(time.Second))
	require.WithinDuration(b, before, exec.CreatedAt, time.Minute)
	require.Equal(b, time.UTC, exec.CreatedAt.Location())
	require.Equal(b, exec.CreatedAt, exec.CreatedAt.Truncate(time.Microsecond))
	require.True(b, exec.StartedAt.IsZero() && exec.EndedAt.IsZero())
	require.Equal(b, definition(), exec.Definition)
	require.Equal(b, exec, b.execution(exec.ID))

	last, err := b.repo.LastExecution(b.ctx, "load", b.request("a", 1).Params.Key())
	require.NoError(b, err)
	require.Equal(b, exec, last)
}

func parametersSurvive(b *bench) {
	list := []core.Parameter{
		{Name: `bar|!p\`, Type: core.TypeString, Value: `|`},
		{Name: "empty", Type: core.TypeString, Value: ""},
		{Name: "text", Type: core.TypeString, Value: "O'Brien said \"%s\" ? $1 @x |!p|!!| !|\\p\n日本\U0001F30A", Identifying: true},
		{Name: "path", Type: core.TypePath, Value: `data/C:\in.csv`, Path: `/jobs/data/C:\in.csv`},
		{Name: "int.max", Type: core.TypeInt, Value: int64(math.MaxInt64), Identifying: true},
		{Name: "int.min", Type: core.TypeInt, Value: int64(math.MinInt64)},
		{Name: "float.integral", Type: core.TypeFloat, Value: float64(3)},
		{Name: "float.small", Type: core.TypeFloat, Value: math.SmallestNonzeroFloat64},
		{Name: "float.max", Type: core.TypeFloat, Value: -math.MaxFloat64},
		{Name: "float.tenth", Type: core.TypeFloat, Value: 0.1},
		{Name: "yes", Type: core.TypeBool, Value: true, Identifying: true},
		{Name: "no", Type: core.TypeBool, Value: false},
		{Name: "date", Type: core.TypeDate, Value: row.NewDate(2024, 2, 29), Identifying: true},
		{Name: "time", Type: core.TypeTimestamp, Value: time.Date(2026, 11, 20, 8, 30, 0, 123456000, time.UTC)},
		{Name: "duration", Type: core.TypeDuration, Value: -90*time.Minute + 3*time.Nanosecond},
	}
	req := b.request("a", 1)
	req.Params = b.params(list...)
	launched, err := b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	got := b.execution(launched.Execution.ID).Params
	require.Equal(b, req.Params, got)
	require.Equal(b, req.Params.Key(), got.Key())
}

func instanceIdentity(b *bench) {
	first := b.launch("a", 1)
	other := b.launch("a", 2)
	require.NotEqual(b, first.InstanceID, other.InstanceID)

	req := b.request("a", 1)
	req.Params = b.params(append(req.Params.All(), core.Parameter{Name: "note", Type: core.TypeString, Value: "again"})...)
	_, err := b.repo.Launch(b.ctx, req)
	var running *ports.AlreadyRunningError
	require.ErrorAs(b, err, &running)
	require.Equal(b, first.ID, running.ExecutionID)

	req = b.request("a", 1)
	req.JobName = "other"
	launched, err := b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	require.NotEqual(b, first.InstanceID, launched.Execution.InstanceID)
}

func completeIsRefused(b *bench) {
	exec, ref := b.started("a", 1)
	b.change(ref, ports.JobChange{To: core.StatusCompleted, ExitCode: core.ExitCompleted})
	_, err := b.repo.Launch(b.ctx, b.request("b", 1))
	var complete *ports.InstanceCompleteError
	require.ErrorAs(b, err, &complete)
	require.Equal(b, exec.ID, complete.Execution.ID)
	require.Equal(b, exec.Params, complete.Execution.Params)
	require.Equal(b, 1, b.count("%sjob_execution"))
}

func runningIsRefused(b *bench) {
	exec, ref := b.started("a", 1)
	refused := func(b *bench) {
		_, err := b.other().Launch(b.ctx, b.request("b", 1))
		var running *ports.AlreadyRunningError
		require.ErrorAs(b, err, &running)
		require.Equal(b, ports.AlreadyRunningError{
			ExecutionID: exec.ID, JobName: "load", Owner: owner("a"), LeaseUntil: exec.LeaseUntil,
		}, *running)
	}
	refused(b)
	_, err := b.repo.RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
	require.NoError(b, err)
	refused(b)
	require.Equal(b, 1, b.count("%sjob_execution"))
}

func attemptsAgain(b *bench) {
	exec, ref := b.started("a", 1)
	memory := core.NewExecutionContext()
	require.NoError(b, memory.Put("rows", 42))
	b.change(ref, ports.JobChange{To: core.StatusFailed, ExitCode: core.ExitFailed, Error: "no such file", Context: memory})

	launched, err := b.repo.Launch(b.ctx, b.request("b", 1))
	require.NoError(b, err)
	require.False(b, launched.TookOver)
	require.Equal(b, b.execution(exec.ID), launched.Previous)
	require.Equal(b, core.StatusFailed, launched.Previous.Status)
	require.Equal(b, "no such file", launched.Previous.Error)

	second := launched.Execution
	require.Equal(b, exec.InstanceID, second.InstanceID)
	require.Equal(b, 2, second.Attempt)
	require.Equal(b, exec.Epoch, second.Epoch)
	rows, ok := second.Context.Get("rows")
	require.True(b, ok, "the job's context goes on")
	require.Equal(b, int64(42), rows)
	require.False(b, second.Context.Changed())
	require.Equal(b, second, b.execution(second.ID))

	_, err = b.repo.RequestStop(b.ctx, second.ID, ports.By{Actor: "test"})
	require.NoError(b, err)
	b.change(jobRef(second), ports.JobChange{To: core.StatusStopped, ExitCode: core.ExitStopped})
	require.Equal(b, 3, b.launch("c", 1).Attempt)
}

func notRestartable(b *bench) {
	for day, end := range []core.Status{core.StatusFailed, core.StatusStopped} {
		_, ref := b.started("a", int64(day))
		b.change(ref, ports.JobChange{To: end})
		req := b.request("b", int64(day))
		req.Restartable = false
		_, err := b.repo.Launch(b.ctx, req)
		require.ErrorIs(b, err, ports.ErrNotRestartable)
	}
	require.Equal(b, 2, b.count("%sjob_execution"))
}

func abandonedOrUnknown(b *bench) {
	_, ref := b.started("a", 1)
	b.change(ref, ports.JobChange{To: core.StatusUnknown, ExitCode: core.ExitUnknown, Error: "commit: connection lost"})
	_, err := b.repo.Launch(b.ctx, b.request("b", 1))
	require.ErrorIs(b, err, ports.ErrUnknownStatus)

	ended := b.execution(ref.ID)
	b.change(ref, ports.JobChange{To: core.StatusAbandoned})
	_, err = b.repo.Launch(b.ctx, b.request("b", 1))
	require.ErrorIs(b, err, ports.ErrAbandoned)

	abandoned := b.execution(ref.ID)
	require.Equal(b, ended.EndedAt, abandoned.EndedAt, "an act of an operator is not an end")
	require.Equal(b, "commit: connection lost", abandoned.Error)
	require.Equal(b, core.ExitUnknown, abandoned.ExitCode)
}

func settled(b *bench) {
	lost := ports.StepChange{To: core.StatusUnknown, ExitCode: core.ExitUnknown, Error: "commit: connection lost", Settles: true}
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	b.end(step, lost)
	require.True(b, b.onlyStep(ref.ID).Settles)
	b.change(ref, ports.JobChange{To: core.StatusUnknown, ExitCode: core.ExitUnknown, Settles: true})
	require.True(b, b.execution(ref.ID).Settles)
	next, err := b.repo.Launch(b.ctx, b.request("b", 1))
	require.NoError(b, err)
	require.Equal(b, core.StatusFailed, next.Previous.Status)
	require.False(b, next.TookOver)
	was := b.execution(ref.ID)
	require.Equal(b, core.StatusFailed, was.Status)
	require.Equal(b, core.ExitFailed, was.ExitCode)
	require.Equal(b, ref.Epoch+1, was.Epoch)
	require.Equal(b, core.StatusFailed, b.onlyStep(ref.ID).Status)
	require.ErrorIs(b, b.checkpoint(step, ports.Checkpoint{}), core.ErrLostOwner)

	_, other := b.started("c", 2)
	_, step = b.step(other, "load", nil)
	b.end(step, lost)
	_, step = b.step(other, "authored", nil)
	b.end(step, ports.StepChange{To: core.StatusUnknown, ExitCode: core.ExitUnknown})
	b.change(other, ports.JobChange{To: core.StatusUnknown, ExitCode: core.ExitUnknown, Settles: true})
	_, err = b.repo.Launch(b.ctx, b.request("d", 2))
	require.ErrorIs(b, err, ports.ErrUnknownStatus, "nothing tells the outcome of one of its steps")

	_, third := b.started("e", 3)
	_, step = b.step(third, "load", nil)
	b.end(step, lost)
	b.change(third, ports.JobChange{To: core.StatusUnknown, ExitCode: core.ExitUnknown, Settles: true})
	ended, err := b.repo.Recover(b.ctx, operator, nil)
	require.NoError(b, err)
	require.Len(b, ended, 1)
	require.Equal(b, third.ID, ended[0].ID)
	require.Equal(b, core.StatusFailed, ended[0].Status)
	require.Equal(b, core.StatusUnknown, b.execution(other.ID).Status)
}

func launchedAgain(b *bench) {
	req := b.request("a", 1)
	first, err := b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	req.Again = true
	second, err := b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	require.Equal(b, first.Execution.ID, second.Execution.ID)
	require.Nil(b, second.Previous)
	other := b.request("b", 1)
	other.Again = true
	_, err = b.repo.Launch(b.ctx, other)
	require.ErrorAs(b, err, new(*ports.AlreadyRunningError), "of another launch it is not")
	require.Equal(b, 1, b.count("%sjob_execution"))
}

func oneWins(b *bench) {
	const rounds, racers = 5, 20
	repos := []ports.Repository{b.repo, b.other()}
	for round := range int64(rounds) {
		type result struct {
			launched ports.Launched
			err      error
		}
		results := make([]result, racers)
		start := make(chan struct{})
		var group sync.WaitGroup
		for i := range racers {
			req := b.request(string(rune('a'+i)), round)
			req.New = i%3 > 0
			group.Go(func() {
				<-start
				results[i].launched, results[i].err = repos[i%len(repos)].Launch(b.ctx, req)
			})
		}
		close(start)
		group.Wait()

		var winner *core.JobExecution
		for _, r := range results {
			if r.err == nil {
				require.Nil(b, winner, "two launches won")
				winner = r.launched.Execution
			}
		}
		require.NotNil(b, winner, "nobody won: %v", results[0].err)
		for _, r := range results {
			if r.err == nil {
				continue
			}
			running, ok := errors.AsType[*ports.AlreadyRunningError](r.err)
			require.True(b, ok, "%v", r.err)
			require.Equal(b, winner.ID, running.ExecutionID)
			require.Equal(b, winner.Owner, running.Owner)
		}
	}
	require.Equal(b, rounds, b.count("%sjob_instance"))
	require.Equal(b, rounds, b.count("%sjob_execution WHERE active = 1"))
	require.Equal(b, rounds, b.count("%sjob_execution"))
}

func uniqueActive(b *bench) {
	running, _ := b.started("a", 1)
	d := b.db.Dialect()
	b.exec(`INSERT INTO %[1]sjob_execution (instance_id, job_name, attempt, status, owner, epoch, lease_until, created_at)
		SELECT instance_id, job_name, 2, 'FAILED', owner, epoch, lease_until, created_at FROM %[1]sjob_execution WHERE id = `+d.Placeholder(1), int64(running.ID))
	_, err := b.repo.Launch(b.ctx, b.request("b", 1))
	var refused *ports.AlreadyRunningError
	require.ErrorAs(b, err, &refused)
	require.Equal(b, running.ID, refused.ExecutionID)
	require.Equal(b, owner("a"), refused.Owner)
}

func launchIsChecked(b *bench) {
	req := b.request("a", 1)
	req.Lease = 0
	_, err := b.repo.Launch(b.ctx, req)
	require.ErrorContains(b, err, "lease")
	req = b.request("a", 1)
	req.JobName = ""
	_, err = b.repo.Launch(b.ctx, req)
	require.ErrorContains(b, err, "job name")
	require.Zero(b, b.count("%sjob_instance"))
}
