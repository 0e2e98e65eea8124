package runtime_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/repository/tasks"
)

type planned struct {
	*office
	runs        *runtime.TaskService
	definitions *repository.Repository
	began       time.Time // it is due from then on
}

func (o *office) planned(s taskports.Schedule, ago time.Duration) *planned {
	o.Helper()
	p := &planned{office: o, definitions: repository.New(o.db, repository.Options{})}
	var err error
	p.runs, err = runtime.NewTaskService(runtime.TaskServiceConfig{Repository: o.repo, Engine: o.engine(), Database: o.db, Catalog: o.catalog, Actor: "tester", Runs: runtime.TimeRuns{
		Definitions: p.definitions,
		Run: func(_ context.Context, d taskports.Definition, at schedule.Time) (task.Submission, error) {
			payload, err := json.Marshal(map[string]any{"params": map[string]string{"at": at.Key}})
			return task.Submission{Title: d.Name, Type: "work", Tasks: []task.Spec{{Payload: payload}}}, err
		},
	}})
	require.NoError(o, err)
	p.register(s)
	d := p.definition()
	now, err := p.definitions.Now(o.Context())
	require.NoError(o, err)
	p.began = now.Add(-ago).Truncate(time.Minute)
	moved, err := p.definitions.Advance(o.Context(), d, p.began, "")
	require.NoError(o, err)
	require.True(o, moved)
	return p
}

func (p *planned) register(s taskports.Schedule) {
	p.Helper()
	_, err := p.definitions.Register(p.Context(), taskports.Definition{Name: "each", Files: ports.NewDefinition("job: each # "+s.Cron, "", nil), Schedule: &s}, "tester")
	require.NoError(p, err)
}

func (p *planned) definition() taskports.Definition {
	p.Helper()
	d, err := p.definitions.Definition(p.Context(), "each")
	require.NoError(p, err)
	return d
}

func (p *planned) leader(holder string) (stop func()) {
	p.Helper()
	scheduler, err := runtime.NewScheduler(p.runs, nil)
	require.NoError(p, err)
	leadership, err := tasks.New(p.db, repository.DefaultPrefix, tasks.Options{})
	require.NoError(p, err)
	leader, err := runtime.NewLeader(runtime.LeaderConfig{
		Leadership: leadership, Database: p.db, Holder: holder, Lease: 400 * time.Millisecond, Heartbeat: 20 * time.Millisecond,
		Duties: []runtime.Duty{scheduler.Duty(0)},
	})
	require.NoError(p, err)
	closing := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { leader.Run(context.WithoutCancel(p.Context()), closing) })
	stop = sync.OnceFunc(func() {
		close(closing)
		group.Wait()
	})
	p.Cleanup(stop)
	return stop
}

func (p *planned) keys() (list []string) {
	p.Helper()
	all, err := p.repo.Tasks(p.Context(), task.Filter{JobDefinition: p.definition().ID, Limit: 1000})
	require.NoError(p, err)
	for _, t := range slices.Backward(all) {
		list = append(list, t.Spec.ScheduledFor)
	}
	return list
}

// decided waits until all times due by now are decided, stops the leaders, so that it stays so when
// the next minute begins, and returns the time up to which they are decided.
func (p *planned) decided(stops ...func()) time.Time {
	p.Helper()
	now, err := p.definitions.Now(p.Context())
	require.NoError(p, err)
	require.Eventually(p, func() bool { return !p.definition().ScheduledUntil.Before(now.Truncate(time.Minute)) }, 20*time.Second, 10*time.Millisecond)
	for _, stop := range stops {
		stop()
	}
	return p.definition().ScheduledUntil
}

func (p *planned) want(until time.Time) (list []string) {
	p.Helper()
	c, err := schedule.ParseIn(p.definition().Schedule.Cron, "UTC")
	require.NoError(p, err)
	for t := range c.All(p.began) {
		if t.At.After(until) {
			break
		}
		list = append(list, t.Key)
	}
	return list
}

var minutely = taskports.Schedule{Cron: "* * * * *", Timezone: "UTC", CatchUp: "all", Overlap: "allow"} //nolint:gochecknoglobals // a constant

func TestNoScheduledRunIsMissingAndNoneIsThereTwice(t *testing.T) {
	eachOffice(t, func(o *office) {
		p := o.planned(minutely, 5*time.Hour) // more than one transaction submits
		stopA, stopB := p.leader("a"), p.leader("b")
		require.Eventually(t, func() bool { return len(p.keys()) > 0 }, 20*time.Second, time.Millisecond)
		stopA()
		until := p.decided(stopB)
		require.Equal(t, p.want(until), p.keys())

		// Paused, and led by another one from the time that the first one reached.
		d := p.definition()
		moved, err := p.definitions.Advance(t.Context(), d, d.ScheduledUntil.Add(-3*time.Minute), "")
		require.NoError(t, err)
		require.True(t, moved)
		until = p.decided(p.leader("c"))
		require.Equal(t, p.want(until), p.keys(), "a time that was submitted is not submitted again")
	}, nil)
}

func TestAForbiddenOverlapIsLeftOutAndAudited(t *testing.T) {
	eachOffice(t, func(o *office) {
		forbid := minutely
		forbid.Overlap = "forbid"
		p := o.planned(forbid, 3*time.Minute)
		p.leader("a")
		p.decided()
		require.Len(t, p.keys(), 1, "nobody works: the first one is not over")
		require.Equal(t, p.want(p.began.Add(time.Minute)), p.keys())
		audit, err := p.definitions.Audit(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, "leave out", audit[1].Act)
		require.Contains(t, audit[1].Detail, "each: skipped, because an earlier run is not over")
	}, nil)
}

func TestADisabledOrChangedScheduleSubmitsNothingOfItsPast(t *testing.T) {
	eachOffice(t, func(o *office) {
		p := o.planned(minutely, 10*time.Minute)
		_, _, err := p.definitions.EnableDefinition(t.Context(), "each", false, "tester")
		require.NoError(t, err)
		stop := p.leader("a")
		_, _, err = p.definitions.EnableDefinition(t.Context(), "each", true, "tester")
		require.NoError(t, err)
		began := p.definition().ScheduledUntil
		stop()
		for _, key := range p.keys() {
			require.GreaterOrEqual(t, key, began.Format("2006-01-02T15:04"), "what was due while it was disabled was not missed")
		}
		hourly := minutely
		hourly.Cron = "0 * * * *"
		p.register(hourly)
		require.True(t, p.definition().ScheduledUntil.After(began))
	}, nil)
}
