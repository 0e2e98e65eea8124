package repositorytest

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func parkTests() []test {
	return []test{
		{"a parked execution has no owner, stays active and is resumed in the same attempt", parkAndResume},
		{"a park is rejected where a stop was requested, unless the caller knows of it", parkRacesStop},
		{"a stop of a parked execution ends what no worker has taken", stopOfParked},
		{"who resumes a parked execution that is to stop ends the partitions of lost workers", lostPartsAreStopped},
		{"an execution that could not be resumed says why until it is", refusedResume},
		{"of many that resume an execution one does", oneResumes},
	}
}

func (b *bench) parked(n int) (ports.JobRef, ports.StepRef, []core.StepExecution) {
	b.Helper()
	ref, manager, planned := b.managed(n, true)
	answer, err := b.repo.Park(b.ctx, ref, ports.Parking{})
	require.NoError(b, err)
	require.Equal(b, core.Applied, answer)
	return ref, manager, planned
}

func (b *bench) resume(name string, id core.JobExecutionID) (ports.Resumed, error) {
	return b.repo.Resume(b.ctx, id, ports.ResumeRequest{Owner: owner(name), Lease: time.Hour})
}

func (b *bench) assign(name string) *ports.Assignment {
	b.Helper()
	a, err := b.repo.AssignPartition(b.ctx, ports.AssignRequest{Owner: owner(name), Lease: time.Hour})
	require.NoError(b, err)
	return a
}

func parkAndResume(b *bench) {
	ref, manager, planned := b.parked(2)
	exec := b.execution(ref.ID)
	require.Equal(b, core.StatusParked, exec.Status)
	require.Equal(b, core.Owner{}, exec.Owner)
	require.True(b, exec.LeaseUntil.IsZero())
	require.Equal(b, 1, b.count("%sjob_execution WHERE active = 1"))
	require.Equal(b, 1, b.count("%sstep_execution WHERE status = 'PARKED' AND owner = ''"))
	_, err := b.repo.Heartbeat(b.ctx, ref, time.Hour)
	require.ErrorIs(b, err, core.ErrLostOwner)
	_, err = b.repo.ChangeJob(b.ctx, ref, ports.JobChange{To: core.StatusFailed})
	require.ErrorIs(b, err, core.ErrLostOwner)
	_, err = b.repo.EndStep(b.ctx, manager, ports.StepChange{To: core.StatusFailed})
	require.ErrorIs(b, err, core.ErrLostOwner)
	req := b.request("b", 1)
	req.Dead = dead
	_, err = b.repo.Launch(b.ctx, req)
	running, ok := errors.AsType[*ports.AlreadyRunningError](err)
	require.True(b, ok, "%v", err)
	require.True(b, running.Parked)
	require.EqualValues(b, len(planned), running.Open.Parts)
	ended, err := b.repo.Recover(b.ctx, operator, nil)
	require.NoError(b, err)
	require.Empty(b, ended)

	for range planned {
		require.Equal(b, ports.FoundWork{Parts: true}, b.work())
		waiting, err := b.repo.Resumable(b.ctx, "", 10, nil)
		require.NoError(b, err)
		require.Empty(b, waiting)
		_, err = b.resume("b", ref.ID)
		_, refused := errors.AsType[*core.TransitionError](err)
		require.True(b, refused, "%v", err)
		b.end(stepRef(b.assign("w").Step), ports.StepChange{To: core.StatusCompleted, Counters: core.Counters{Read: 1}})
	}
	require.Nil(b, b.assign("w"))
	require.Equal(b, ports.FoundWork{Parked: true}, b.work())
	require.Equal(b, ports.FoundWork{}, b.work(b.execution(ref.ID).Definition.Hash))
	waiting, err := b.repo.Resumable(b.ctx, "", 10, nil)
	require.NoError(b, err)
	require.Equal(b, []core.JobExecutionID{ref.ID}, waiting)
	resumed, err := b.resume("b", ref.ID)
	require.NoError(b, err)
	require.Equal(b, core.StatusStarted, resumed.Execution.Status)
	require.Equal(b, ref.Epoch+1, resumed.Execution.Epoch)
	entries, err := b.repo.Audit(b.ctx, ref.ID)
	require.NoError(b, err)
	resume := entries[slices.IndexFunc(entries, func(e ports.AuditEntry) bool { return e.Act == "resume" && e.Step == 0 })]
	require.Equal(b, core.StatusParked, resume.From)
	require.Equal(b, ref.Epoch+1, resume.Epoch)
	require.Equal(b, exec.Attempt, resumed.Execution.Attempt)
	require.Len(b, resumed.Steps, 1)
	require.Equal(b, manager.ID, resumed.Steps[0].ID)
	again, err := b.resume("b", ref.ID)
	require.NoError(b, err, "the reply was lost")
	require.Equal(b, resumed, again)
	_, err = b.resume("c", ref.ID)
	require.Error(b, err)

	next := jobRef(resumed.Execution)
	_, err = b.repo.EndStep(b.ctx, manager, ports.StepChange{To: core.StatusCompleted})
	require.ErrorIs(b, err, core.ErrLostOwner, "the process that parked it is fenced")
	b.end(stepRef(resumed.Steps[0]), ports.StepChange{To: core.StatusCompleted})
	b.change(next, ports.JobChange{To: core.StatusCompleted})
}

func parkRacesStop(b *bench) {
	ref, manager, _ := b.managed(3, true)
	taken := b.assign("w")
	_, err := b.repo.RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
	require.NoError(b, err)
	answer, err := b.repo.Park(b.ctx, ref, ports.Parking{})
	require.Equal(b, core.Rejected, answer)
	_, refused := errors.AsType[*core.TransitionError](err)
	require.True(b, refused, "%v", err)
	require.Equal(b, core.StatusStopping, b.execution(ref.ID).Status)

	answer, err = b.repo.Park(b.ctx, ref, ports.Parking{Stopping: true})
	require.NoError(b, err)
	require.Equal(b, core.Applied, answer)
	require.EqualValues(b, 1, b.open(manager))
	stop, err := b.repo.HeartbeatStep(b.ctx, stepRef(taken.Step), time.Hour)
	require.NoError(b, err)
	require.True(b, stop)
	b.end(stepRef(taken.Step), ports.StepChange{To: core.StatusStopped})
	resumed, err := b.resume("b", ref.ID)
	require.NoError(b, err)
	require.Equal(b, core.StatusStopping, resumed.Execution.Status)
	require.Equal(b, core.StatusStarted, resumed.Steps[0].Status)
	b.end(stepRef(resumed.Steps[0]), ports.StepChange{To: core.StatusStopped})
	b.change(jobRef(resumed.Execution), ports.JobChange{To: core.StatusStopped})
}

func stopOfParked(b *bench) {
	for taken := range 4 { // none, some and all of three partitions are taken
		ref, manager, _ := b.parked(3)
		var assigned []*ports.Assignment
		for range taken {
			assigned = append(assigned, b.assign("w"))
		}
		answer, err := b.other().RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
		require.NoError(b, err)
		require.Equal(b, core.Applied, answer)
		answer, err = b.other().RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
		require.NoError(b, err)
		require.Equal(b, core.Duplicate, answer)
		require.Equal(b, core.StatusStopping, b.execution(ref.ID).Status)
		require.EqualValues(b, taken, b.open(manager))
		require.Nil(b, b.assign("w"))
		for _, a := range assigned {
			waiting, err := b.repo.Resumable(b.ctx, "", 10, nil)
			require.NoError(b, err)
			require.Empty(b, waiting)
			b.end(stepRef(a.Step), ports.StepChange{To: core.StatusStopped})
		}
		resumed, err := b.resume("b", ref.ID)
		require.NoError(b, err)
		require.Equal(b, core.StatusStopping, resumed.Execution.Status)
		answer, err = b.repo.RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
		require.NoError(b, err)
		require.Equal(b, core.Duplicate, answer)
		b.change(jobRef(resumed.Execution), ports.JobChange{To: core.StatusStopped})
		require.Equal(b, taken, b.count("%sstep_execution WHERE status = 'STOPPED' AND assigned_count > 0 AND job_execution_id = "+b.db.Dialect().Placeholder(1), int64(ref.ID)))
	}
}

func lostPartsAreStopped(b *bench) {
	ref, manager, _ := b.parked(3)
	expired, dead, alive := b.assign("v"), b.assign("w"), b.assign("x")
	b.lost(expired)
	resume := func() error {
		_, err := b.repo.Resume(b.ctx, ref.ID, ports.ResumeRequest{Owner: owner("b"), Lease: time.Hour, Dead: func(o core.Owner) bool { return o == owner("w") }})
		return err
	}
	var waits *core.TransitionError
	require.ErrorAs(b, resume(), &waits)
	require.EqualValues(b, 3, b.open(manager), "no stop was requested")
	_, err := b.repo.RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
	require.NoError(b, err)
	require.ErrorAs(b, resume(), &waits)
	require.EqualValues(b, 1, b.open(manager), "one has a worker")
	_, err = b.repo.EndStep(b.ctx, stepRef(dead.Step), ports.StepChange{To: core.StatusCompleted})
	require.ErrorIs(b, err, core.ErrLostOwner)
	b.end(stepRef(alive.Step), ports.StepChange{To: core.StatusStopped})
	require.NoError(b, resume())
	require.Equal(b, core.StatusStopping, b.execution(ref.ID).Status)
	steps, err := b.repo.Partitions(b.ctx, manager.ID)
	require.NoError(b, err)
	for _, s := range steps {
		require.Equal(b, core.StatusStopped, s.Status, s.Name)
	}
}

func (b *bench) work(except ...string) ports.FoundWork {
	b.Helper()
	found, err := b.repo.Work(b.ctx, ports.AssignRequest{Lease: time.Minute, Except: except})
	require.NoError(b, err)
	return found
}

func refusedResume(b *bench) {
	ref, manager, _ := b.parked(1)
	b.end(stepRef(b.assign("w").Step), ports.StepChange{To: core.StatusFailed})
	require.Zero(b, b.open(manager))
	require.NoError(b, b.repo.RefuseResume(b.ctx, ref.ID, "a file\x00 is missing"))
	require.Equal(b, "a file\uFFFD is missing", b.execution(ref.ID).Error)
	waiting, err := b.repo.Resumable(b.ctx, "", 10, []string{"other", b.execution(ref.ID).Definition.Hash})
	require.NoError(b, err)
	require.Empty(b, waiting)
	waiting, err = b.repo.Resumable(b.ctx, "", 10, []string{"other"})
	require.NoError(b, err)
	require.Equal(b, []core.JobExecutionID{ref.ID}, waiting)
	_, err = b.resume("b", ref.ID)
	require.NoError(b, err)
	require.NoError(b, b.repo.RefuseResume(b.ctx, ref.ID, "too late"))
	require.Empty(b, b.execution(ref.ID).Error)
}

func oneResumes(b *bench) {
	ref, _, _ := b.parked(1)
	b.end(stepRef(b.assign("w").Step), ports.StepChange{To: core.StatusFailed})
	var won atomic.Int32
	var all sync.WaitGroup
	for _, name := range []string{"b", "c", "d", "e"} {
		repo := b.other()
		all.Go(func() {
			_, err := repo.Resume(b.ctx, ref.ID, ports.ResumeRequest{Owner: owner(name), Lease: time.Hour})
			if err == nil {
				won.Add(1)
			} else if _, refused := errors.AsType[*core.TransitionError](err); !refused {
				b.Error(err)
			}
		})
	}
	all.Wait()
	require.EqualValues(b, 1, won.Load())
}
