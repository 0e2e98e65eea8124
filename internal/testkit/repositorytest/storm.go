package repositorytest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func stormTests() []test {
	return []test{{"whatever operators and owners do at once, each row is written once and counted", storm}}
}

func storm(b *bench) {
	const owners, operators, instances, rows = 4, 2, 6, 40
	b.exec("CREATE TABLE business (instance bigint, id bigint) -- %s")
	ctx, cancel := context.WithCancel(b.ctx)
	errs := make([]error, owners+operators)
	var work, acts sync.WaitGroup
	for n := range owners {
		db, random := b.Connect(b.T), rand.New(rand.NewPCG(uint64(n), 17))
		repo := b.New(db, nil)
		requests := make([]ports.LaunchRequest, instances)
		for day := range requests {
			requests[day] = b.request(fmt.Sprint("owner", n), int64(day))
			requests[day].Dead = dead
		}
		work.Go(func() {
			for turn := 0; turn < 25 && errs[n] == nil; turn++ {
				errs[n] = b.writeOn(db, repo, requests[random.IntN(instances)], rows, random)
			}
		})
	}
	for n := range operators {
		repo, random := b.New(b.Connect(b.T), nil), rand.New(rand.NewPCG(uint64(n), 19))
		acts.Go(func() {
			for ctx.Err() == nil && errs[owners+n] == nil {
				errs[owners+n] = b.act(repo, random)
			}
		})
	}
	work.Wait()
	cancel()
	acts.Wait()
	require.NoError(b, errors.Join(errs...))

	for id, list := range b.instances() {
		b.Logf("instance %d: %d attempts, the last %s", id, len(list), list.newest().Status)
		written, last := int64(0), int64(0)
		for _, e := range list {
			steps, err := b.repo.Steps(b.ctx, e.ID)
			require.NoError(b, err)
			for _, s := range steps {
				written += s.Counters.Write
				require.Equal(b, written, s.Total().Write, "what came before is in the sum")
				if s.Position != nil {
					last, err = strconv.ParseInt(string(s.Position), 10, 64)
					require.NoError(b, err)
				}
				if e.Status.IsOver() {
					require.True(b, s.Status.IsOver(), "no step outlives its job")
				}
			}
		}
		where := fmt.Sprintf("business WHERE instance = %d -- %%s", id)
		require.Equal(b, written, int64(b.count(where)), "each row is counted")
		require.Equal(b, last, written, "and none is left out")
		var distinct int64
		require.NoError(b, b.db.Conn().QueryRowContext(b.ctx, fmt.Sprintf("SELECT count(DISTINCT id) FROM business WHERE instance = %d", id)).Scan(&distinct))
		require.Equal(b, written, distinct, "none is there twice")
	}
	require.Equal(b, b.count("%sjob_execution WHERE active = 1"), b.count("%sjob_execution WHERE status IN ('STARTING', 'STARTED', 'STOPPING')"))
}

func (b *bench) writeOn(db tx.Database, repo ports.Repository, req ports.LaunchRequest, rows int64, random *rand.Rand) error {
	launched, err := repo.Launch(b.ctx, req)
	if err != nil {
		return onlyRefused(err)
	}
	exec := launched.Execution
	ref := jobRef(exec)
	if _, err := repo.ChangeJob(b.ctx, ref, ports.JobChange{To: core.StatusStarted}); err != nil {
		return onlyRefused(err)
	}
	history, err := repo.LastSteps(b.ctx, exec.InstanceID, 0)
	if err != nil {
		return err
	}
	var earlier *core.StepExecution
	if h, ok := history["load"]; ok {
		earlier = &h.Last
	}
	step, err := repo.StartStep(b.ctx, ref, ports.StepStart{Name: "load", Earlier: earlier})
	if errors.Is(err, core.ErrStopped) { // an operator was faster (rule L13)
		_, err = repo.ChangeJob(b.ctx, ref, ports.JobChange{To: core.StatusStopped})
		return onlyRefused(err)
	}
	if err != nil {
		return onlyRefused(err)
	}
	end, at, counters := core.StatusCompleted, int64(0), core.Counters{}
	if len(step.Position) > 0 {
		if at, err = strconv.ParseInt(string(step.Position), 10, 64); err != nil {
			return err
		}
	}
	for at < rows && end == core.StatusCompleted {
		at++
		counters.Write++
		counters.Commit++
		c := ports.Checkpoint{Counters: counters, Position: item.Position(strconv.FormatInt(at, 10)), OnStop: func() { end = core.StatusStopped }}
		if err := b.row(db, repo, stepRef(*step), exec.InstanceID, at, c); err != nil {
			return onlyRefused(err)
		}
		if random.IntN(20) == 0 {
			return nil // the process dies
		}
	}
	if _, err := repo.EndStep(b.ctx, stepRef(*step), ports.StepChange{To: end, Counters: counters}); err != nil {
		return onlyRefused(err)
	}
	_, err = repo.ChangeJob(b.ctx, ref, ports.JobChange{To: end})
	return onlyRefused(err)
}

func (b *bench) row(db tx.Database, repo ports.Repository, ref ports.StepRef, instance core.JobInstanceID, id int64, c ports.Checkpoint) error {
	return tx.NewManager(db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		if _, err := tx.ConnOf(ctx, db).ExecContext(ctx, fmt.Sprintf("INSERT INTO business VALUES (%d, %d)", instance, id)); err != nil {
			return err
		}
		return repo.Checkpoint(ctx, ref, c)
	})
}

func (b *bench) act(repo ports.Repository, random *rand.Rand) error {
	list, err := repo.Executions(b.ctx, ports.ExecutionFilter{Limit: 5})
	if err != nil || len(list) == 0 {
		return err
	}
	id := list[random.IntN(len(list))].ID
	switch random.IntN(80) {
	case 0:
		_, err = repo.RequestStop(b.ctx, id, ports.By{Actor: "test"})
	case 1:
		if err = repo.Abandon(b.ctx, id, ports.By{Actor: operator}); err == nil {
			return nil
		}
	case 2:
		_, err = repo.Recover(b.ctx, operator, func(core.Owner) bool { return random.IntN(3) == 0 })
	}
	return onlyRefused(err)
}

func onlyRefused(err error) error {
	var running *ports.AlreadyRunningError
	var complete *ports.InstanceCompleteError
	var refused *core.TransitionError
	if errors.As(err, &running) || errors.As(err, &complete) || errors.As(err, &refused) ||
		errors.Is(err, ports.ErrAbandoned) || errors.Is(err, ports.ErrNotMostRecent) || errors.Is(err, core.ErrLostOwner) {
		return nil
	}
	return err
}
