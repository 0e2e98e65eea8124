package batch

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/logfolder"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Work executes tasks that have a handler here and partitions planned for workers (`remote: true`), until stop
// is closed or ctx ends. On stop it finishes current chunks and gives partitions back; tasks have o.Drain. The
// partitions' components must be registered here too.
func (a *App) Work(ctx context.Context, stop <-chan struct{}, o runtime.Options) error {
	owner, err := job.CurrentOwner()
	if err != nil {
		return err
	}
	s := a.parts.Settings
	name := workerName(owner)
	config := runtime.Config{
		Lease: s.Lease, Heartbeat: s.Heartbeat, Slots: o.Slots, Poll: o.Poll, Drain: o.Drain, Report: o.Report,
		Tasks: &runtime.Tasks{
			Executions: a.parts.Tasks.Repository, Maintenance: a.parts.Tasks.Repository, Engine: a.parts.Tasks.Engine, Database: a.parts.Tasks.Database, Catalog: a.parts.Tasks.Catalog,
			Types: o.Types, Worker: name, Version: programVersion(), Observer: a.parts.Observer, Labels: a.labels(o), Owner: owner,
		},
	}
	if !o.WithoutParts {
		config.Parts = a.workOnParts(owner, name)
	}
	var leader *runtime.Leader
	config.Follows = func() bool { return leader.Follows() } // after NewWorker
	w, err := runtime.NewWorker(config)
	if err != nil {
		return err
	}
	if config.Parts != nil && (o.Types == nil || len(o.Types) > 0) {
		defer a.parts.Tasks.Steps.Working(o.Types)()
	}
	if leader, err = a.leader(config, name, w.Tend); err != nil {
		return err
	}
	a.parts.Observer.Observe(ctx, core.WorkerStarted{Worker: name})
	ended := make(chan struct{})
	var leading sync.WaitGroup
	leading.Go(func() { leader.Run(ctx, ended) })
	defer leading.Wait()
	defer close(ended)
	return w.Run(ctx, stop)
}

const (
	lostAfter = time.Minute
	lostPoll  = 10 * time.Second
	logPoll   = time.Minute
	purgePoll = time.Minute
	// deciderPoll: the alert SurfinDeciderMissing counts deciders that no worker has.
	deciderPoll = time.Minute
	// placementPoll: each second, like a leader.
	placementPoll = 0
	schedulePoll  = time.Second
)

func (a *App) leader(config runtime.Config, name string, tend func(context.Context)) (*runtime.Leader, error) {
	report := config.Report
	t, folder := a.parts.Tasks, a.parts.Settings.Tasks.Logs
	duties := append(t.Sweep.Duties(lostAfter, lostPoll), runtime.RedeliverReady(a.parts.Repository, t.Engine, lostPoll))
	placing, err := runtime.NewPlacing(runtime.PlacingConfig{Places: a.parts.Tasks.Places, Workers: t.Repository.Workers, Settings: t.Repository.Settings, Engine: t.Engine})
	if err != nil {
		return nil, err
	}
	duties = append(duties, placing.Duties(placementPoll, lostPoll)...)
	var store taskports.LogStore
	if folder != "" {
		store = logfolder.New(folder)
	}
	duties = append(duties, runtime.MoveLogs(t.Repository.Settings, t.Repository, store, logPoll))
	duties = append(duties, runtime.MissingDeciders(t.Repository, a.parts.Observer, deciderPoll))
	duties = append(duties, runtime.PurgeOld(t.Repository.Settings, taskports.HistoryRetention, purgePoll, a.purgeJobs, a.purgeTasks, a.purgeEvents),
		runtime.PurgeOld(t.Repository.Settings, taskports.AuditRetention, purgePoll, a.purgeActs))
	c := runtime.LeaderConfig{
		Leadership: t.Repository, Database: t.Database, Holder: name, Lease: config.Lease, Heartbeat: config.Heartbeat, Tend: tend, Deciders: t.Catalog.Deciders(),
	}
	if report != nil {
		c.Report = func(err error) { report(runtime.Event{What: "failed", Err: fmt.Errorf("lead: %w", err)}) }
	}
	scheduler, err := runtime.NewScheduler(a.Tasks, c.Report)
	if err != nil {
		return nil, err
	}
	c.Duties = append(duties, scheduler.Duty(schedulePoll))
	return runtime.NewLeader(c)
}

func (a *App) workOnParts(owner core.Owner, name string) *runtime.Parts {
	observer := a.parts.Observer.Observer // a core.Scope
	executor := func(t ports.Transitions) model.StepExecutor {
		return newExecutor(t, a.parts.Repository, observer, a.parts.Places)
	}
	return &runtime.Parts{
		Repository: a.parts.Repository.Patient(), Engine: a.parts.Tasks.Engine, Job: a.Service.StoredJob, Owner: owner, Executor: executor,
		Services: model.StepServices{Stores: a.parts.Checkpoints, Observer: observer, Owners: model.OwnersFunc(job.DeadOwner), Jobs: a.parts.Launcher},
		Worker:   name,
		Resume: func(ctx context.Context, j *model.Job, id core.JobExecutionID, stop <-chan struct{}) error {
			// If this worker stops, another one continues the parked execution.
			_, err := a.parts.Launcher.Resume(ctx, j, id, job.Resumption{Release: stop, Worker: name})
			return err
		},
		Branch: func(ctx context.Context, j *model.Job, of *ports.Assignment, since time.Duration, stop <-chan struct{}) (*core.StepExecution, error) {
			return a.parts.Launcher.Branch(ctx, j, of, job.BranchRequest{Since: since, Release: stop, Executor: executor})
		},
	}
}

func (a *App) labels(o runtime.Options) map[string]string {
	all := map[string]string{}
	maps.Copy(all, a.parts.Settings.Worker.Labels)
	maps.Copy(all, o.Labels)
	return all
}

const longestHost = 60

// workerName is unique, also for equal process numbers on machines of one name.
func workerName(owner core.Owner) string {
	return fmt.Sprintf("%s/%d/%s", owner.Host[:min(len(owner.Host), longestHost)], owner.PID, rand.Text()[:8])
}

func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Version
}

const purgeBatch = 100

// Executions go first, so that their steps' tasks can follow.

const inTheAudit = "leader"

func (a *App) purgeActs(ctx context.Context, age time.Duration) (more bool, err error) {
	return a.Service.PurgeActs(ctx, age, 10*purgeBatch)
}

func (a *App) purgeJobs(ctx context.Context, age time.Duration) (more bool, err error) {
	ctx = ports.WithActor(ctx, inTheAudit)
	purged, err := a.Service.Purge(ctx, operator.PurgeRequest{EndedBefore: time.Now().Add(-age), Batches: 1})
	return purged.Executions > 0, err
}

func (a *App) purgeTasks(ctx context.Context, age time.Duration) (more bool, err error) {
	n, err := a.parts.Tasks.Repository.PurgeTasks(ctx, age, purgeBatch, inTheAudit)
	return n == purgeBatch, err
}

func (a *App) purgeEvents(ctx context.Context, age time.Duration) (more bool, err error) {
	n, err := a.parts.Tasks.Events.Purge(ctx, age, purgeBatch, inTheAudit)
	return n == purgeBatch, err
}
