package repositorytest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func purgeTests() []test {
	return []test{
		{"a purge deletes what is old and never what a restart reads, whatever the history", purgesAnyHistory},
		{"a purge that asks for too much is refused", purgeIsChecked},
		{"what is just redriven is not purged", redrivenIsKept},
		{"of a purge and a launch of one instance either comes first", purgeOrLaunch},
		{"the parameters of the newest deleted instance are kept", keepsLastParameters},
		{"an instance is deleted with all that belongs to it, and not while it runs", deletesInstance},
	}
}

type attempts []core.JobExecution

func (a attempts) newest() core.JobExecution { return a[len(a)-1] }

func (b *bench) history(random *rand.Rand) {
	b.Helper()
	ends := []core.Status{core.StatusFailed, core.StatusStopped, core.StatusCompleted, core.StatusUnknown, core.StatusAbandoned, core.StatusStarted}
	day := 0
	for instance := range int64(12) {
		req := b.request("a", instance)
		req.JobName = []string{"load", "report"}[instance%2]
		for {
			day += random.IntN(2)
			launched, err := b.repo.Launch(b.ctx, req)
			require.NoError(b, err)
			ref := jobRef(launched.Execution)
			b.change(ref, ports.JobChange{To: core.StatusStarted})
			_, step := b.step(ref, "load", nil)
			require.NoError(b, b.checkpoint(step, ports.Checkpoint{Skipped: []core.SkippedItem{{Phase: core.PhaseRead, Class: "bad"}}}))
			end := ends[random.IntN(len(ends))]
			if end == core.StatusStarted {
				break
			}
			b.end(step, ports.StepChange{To: core.StatusFailed})
			if end == core.StatusAbandoned {
				b.change(ref, ports.JobChange{To: core.StatusFailed})
			}
			b.change(ref, ports.JobChange{To: end})
			b.ranOn(ref.ID, day, day+random.IntN(6))
			if end != core.StatusFailed && end != core.StatusStopped || random.IntN(3) == 0 {
				break
			}
		}
	}
}

func (b *bench) ranOn(id core.JobExecutionID, begin, end int) {
	b.Helper()
	at := func(day int) string {
		micros := fmt.Sprint(january(day).UnixMicro())
		if b.db.SingleWriter() {
			return micros
		}
		if b.db.Dialect() == tx.MySQL {
			return "from_unixtime(" + micros + " / 1000000)"
		}
		return "to_timestamp(" + micros + " / 1000000.0)"
	}
	b.exec("UPDATE %sjob_execution SET created_at = " + at(begin) + ", ended_at = " + at(end) + fmt.Sprintf(" WHERE id = %d", id))
}

func january(day int) time.Time { return time.Date(2026, 1, 1+day, 0, 0, 0, 0, time.UTC) }

func (b *bench) instances() map[core.JobInstanceID]attempts {
	b.Helper()
	all, err := b.repo.Executions(b.ctx, ports.ExecutionFilter{Limit: 1000})
	require.NoError(b, err)
	slices.Reverse(all)
	found := map[core.JobInstanceID]attempts{}
	for _, e := range all {
		found[e.InstanceID] = append(found[e.InstanceID], e)
	}
	return found
}

func purgesAnyHistory(b *bench) {
	random := rand.New(rand.NewPCG(3, 5))
	for range 12 {
		b.history(random)
		f := ports.PurgeFilter{EndedBefore: january(random.IntN(20)), KeepLast: random.IntN(4), Batch: 1 + random.IntN(6)}
		for _, s := range []core.Status{core.StatusFailed, core.StatusStopped, core.StatusCompleted, core.StatusUnknown} {
			if random.IntN(2) == 0 {
				f.Statuses = append(f.Statuses, s)
			}
		}
		if random.IntN(3) == 0 {
			f.JobName = "load"
		}
		before := b.instances()
		dry := f
		dry.DryRun = true
		counted, err := b.repo.Purge(b.ctx, dry, operator)
		require.NoError(b, err)
		require.Equal(b, before, b.instances(), "a dry run changes nothing")
		audits := b.count("%saudit WHERE act = 'purge'")
		purged, err := b.repo.Purge(b.ctx, f, operator)
		require.NoError(b, err)
		require.Equal(b, counted, purged, "%+v", f)
		b.judgePurge(f, before, b.instances(), purged)
		require.Equal(b, audits+int(purged.Executions), b.count("%saudit WHERE act = 'purge' AND actor = 'ada@host'"))
		require.Equal(b, len(b.instances()), b.count("%sjob_instance"))

		_, err = b.repo.Recover(b.ctx, operator, dead) // for the next round
		require.NoError(b, err)
		for id := range b.instances() {
			b.purgeInstance(id)
		}
		for _, table := range []string{"job_instance", "job_execution", "job_execution_param", "step_execution", "skipped_item"} {
			require.Zero(b, b.count("%s"+table), table)
		}
	}
}

func (b *bench) judgePurge(f ports.PurgeFilter, before, after map[core.JobInstanceID]attempts, purged ports.Purged) {
	b.Helper()
	statuses := f.Statuses
	if len(statuses) == 0 {
		statuses = []core.Status{core.StatusCompleted, core.StatusAbandoned}
	}
	chosen := func(e core.JobExecution) bool {
		return slices.Contains(statuses, e.Status) && !e.EndedAt.IsZero() && e.EndedAt.Before(f.EndedBefore)
	}
	newest := map[string][]core.JobInstanceID{} // per job, newest first
	for id, list := range before {
		newest[list[0].JobName] = append(newest[list[0].JobName], id)
	}
	for _, ids := range newest {
		slices.SortFunc(ids, func(a, b core.JobInstanceID) int { return int(b - a) })
	}
	gone := 0
	for id, list := range before {
		left, last := after[id], list.newest()
		rank := slices.Index(newest[last.JobName], id)
		switch {
		case last.Status.IsRunning(), rank < f.KeepLast, f.JobName != "" && f.JobName != last.JobName:
			require.Equal(b, list, left, "%+v: kept", f)
		case chosen(last):
			require.Empty(b, left, "%+v: the instance goes with its last execution", f)
		case last.Status == core.StatusCompleted || last.Status == core.StatusAbandoned:
			var want attempts
			for _, e := range list {
				if e.ID == last.ID || !chosen(e) {
					want = append(want, e)
				}
			}
			require.Equal(b, want, left, "%+v: old attempts go alone", f)
		default:
			require.Equal(b, list, left, "%+v: a restart reads all of them", f)
		}
		gone += len(list) - len(left)
	}
	require.Equal(b, ports.Purged{
		Instances: int64(len(before) - len(after)), Executions: int64(gone), Steps: int64(gone), SkippedItems: int64(gone),
	}, purged)
}

func purgeIsChecked(b *bench) {
	b.ended("a", 1, core.StatusCompleted)
	for text, f := range map[string]ports.PurgeFilter{
		"EndedBefore":          {},
		"active":               {EndedBefore: time.Now(), Statuses: []core.Status{core.StatusStarted}},
		"must not be negative": {EndedBefore: time.Now(), KeepLast: -1},
		"batch -1: both must":  {EndedBefore: time.Now(), Batch: -1},
	} {
		_, err := b.repo.Purge(b.ctx, f, operator)
		require.ErrorContains(b, err, text)
	}
	require.Equal(b, 1, b.count("%sjob_execution"))
	purged, err := b.repo.Purge(b.ctx, ports.PurgeFilter{EndedBefore: time.Now().Add(time.Hour), Batch: 1 << 30}, operator)
	require.NoError(b, err)
	require.Equal(b, ports.Purged{Instances: 1, Executions: 1}, purged)
	require.Positive(b, b.count("%saudit"), "the audit stays")
}

func redrivenIsKept(b *bench) {
	exec := b.ended("a", 1, core.StatusCompleted)
	req := b.request("a", 2)
	req.RedriveOf = exec.ID
	launched, err := b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	f := ports.PurgeFilter{EndedBefore: time.Now().Add(time.Hour)}
	purged, err := b.repo.Purge(b.ctx, f, operator)
	require.NoError(b, err)
	require.Zero(b, purged)
	b.change(jobRef(launched.Execution), ports.JobChange{To: core.StatusFailed})
	purged, err = b.repo.Purge(b.ctx, f, operator)
	require.NoError(b, err)
	require.Equal(b, ports.Purged{Instances: 1, Executions: 1}, purged)
}

func purgeOrLaunch(b *bench) {
	const rounds = 8
	other := b.other()
	f := ports.PurgeFilter{EndedBefore: time.Now().Add(time.Hour), Statuses: []core.Status{core.StatusFailed}}
	for day := range int64(rounds) {
		first := b.ended("a", day, core.StatusFailed)
		var launched ports.Launched
		var errs [2]error
		start := make(chan struct{})
		var group sync.WaitGroup
		req := b.request("b", day)
		group.Go(func() { <-start; launched, errs[0] = b.repo.Launch(b.ctx, req) })
		group.Go(func() { <-start; _, errs[1] = other.Purge(b.ctx, f, operator) })
		close(start)
		group.Wait()
		require.NoError(b, errors.Join(errs[:]...))
		list := b.instances()[launched.Execution.InstanceID]
		if launched.Previous == nil { // the purge was first
			require.NotEqual(b, first.InstanceID, launched.Execution.InstanceID)
			require.Len(b, list, 1)
			require.Equal(b, 1, launched.Execution.Attempt)
		} else {
			require.Equal(b, first.InstanceID, launched.Execution.InstanceID)
			require.Len(b, list, 2)
		}
		b.change(jobRef(launched.Execution), ports.JobChange{To: core.StatusStopped})
	}
}

func (b *bench) purgeInstance(id core.JobInstanceID) ports.Purged {
	b.Helper()
	purged, err := b.repo.Purge(b.ctx, ports.PurgeFilter{Instance: id}, operator)
	require.NoError(b, err)
	return purged
}

func keepsLastParameters(b *bench) {
	_, err := b.repo.LastPurged(b.ctx, "load")
	require.ErrorIs(b, err, core.ErrNotFound)
	first, second := b.ended("a", 1, core.StatusFailed), b.ended("a", 2, core.StatusCompleted)
	b.purgeInstance(second.InstanceID)
	b.purgeInstance(first.InstanceID)
	last, err := b.repo.LastPurged(b.ctx, "load")
	require.NoError(b, err)
	require.Equal(b, &core.JobExecution{JobName: "load", InstanceID: second.InstanceID, Params: second.Params}, last)

	again := b.request("a", 3)
	again.Params, err = core.NewParameters(append(again.Params.All(), core.Parameter{Name: core.AgainName, Type: core.TypeInt, Value: int64(1), Identifying: true})...)
	require.NoError(b, err)
	redrive := b.request("a", 4)
	redrive.RedriveOf = second.ID
	for _, req := range []ports.LaunchRequest{b.request("a", 3), again, redrive} {
		launched, err := b.repo.Launch(b.ctx, req)
		require.NoError(b, err)
		b.change(jobRef(launched.Execution), ports.JobChange{To: core.StatusFailed})
	}
	series := func(f ports.InstanceFilter) (keys []string) {
		f.JobName = "load"
		list, err := b.repo.Instances(b.ctx, f)
		require.NoError(b, err)
		for _, i := range list {
			keys = append(keys, i.Key)
		}
		return keys
	}
	third := b.request("a", 3).Params
	require.Equal(b, []string{again.Params.Key(), third.Key()}, series(ports.InstanceFilter{BaseKey: third.BaseKey()}))
	require.Equal(b, []string{again.Params.Key(), third.Key()}, series(ports.InstanceFilter{NoRedrives: true}))
	require.Equal(b, []string{third.Key()}, series(ports.InstanceFilter{OnlyBase: true}))
	for id := range b.instances() {
		b.purgeInstance(id)
	}
	last, err = b.repo.LastPurged(b.ctx, "load")
	require.NoError(b, err)
	require.Equal(b, third, last.Params, "neither a repetition nor a redrive")
}

func deletesInstance(b *bench) {
	b.ended("a", 1, core.StatusFailed)
	exec, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{Skipped: []core.SkippedItem{{Phase: core.PhaseRead}}}))
	kept := b.ended("a", 2, core.StatusFailed)
	_, err := b.repo.Purge(b.ctx, ports.PurgeFilter{Instance: exec.InstanceID}, operator)
	var running *ports.AlreadyRunningError
	require.ErrorAs(b, err, &running)
	require.Equal(b, exec.ID, running.ExecutionID)
	b.change(ref, ports.JobChange{To: core.StatusFailed})

	counted, err := b.repo.Purge(b.ctx, ports.PurgeFilter{Instance: exec.InstanceID, DryRun: true}, operator)
	require.NoError(b, err)
	purged := b.purgeInstance(exec.InstanceID)
	purged.Left = nil
	require.Equal(b, ports.Purged{Instances: 1, Executions: 2, Steps: 1, SkippedItems: 1}, purged)
	require.Equal(b, counted, purged)
	require.Equal(b, map[core.JobInstanceID]attempts{kept.InstanceID: {*kept}}, b.instances())
	require.Zero(b, b.count("%sskipped_item")+b.count("%sstep_execution"))
	require.Equal(b, 2, b.count("%saudit WHERE act = 'purge' AND actor = 'ada@host' AND from_status = 'FAILED'"))
	_, err = b.repo.Purge(b.ctx, ports.PurgeFilter{Instance: exec.InstanceID}, operator)
	require.ErrorIs(b, err, core.ErrNotFound)
	require.Equal(b, 1, b.launch("b", 1).Attempt)
}
