package operator

import (
	"errors"
	"time"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Service runs and operates jobs. It is safe for concurrent use.
type Service struct {
	*schema        // Prepare, CheckDatabase, Migrate
	*jobs          // StoredJob
	*chooser       // Choose
	*runs          // Run, Start, Restart, Redrive, Backfill, Close
	*acts          // Stop, AwaitEnd, Abandon, Recover, Purge, Acts
	*requests      // Once
	*history       // List, Jobs, Instances, Show, Summary
	*skips         // Skips, Skip, SplitSkip, ExportSkips
	*progress      // Progress, Meter
	*explainer     // Explain
	*plans         // Plan, PlanRedrive
	*flows         // JobFlow, ExecutionFlow
	*inspector     // Inspect
	*comparer      // Compare
	*overviews     // Overview
	*summaries     // JobSummaries
	*trends        // Trend, Calendar
	*skipGroups    // SkipGroups
	*executionLogs // Log
	*parted        // Parts
	*timelines     // Timeline
	*watcher       // Changes
	*curves        // Series
	*schedules     // Register, Unregister, Enable, Disable, Definitions, Schedules, Figures
	*bulks         // Bulk, PlanBulk
	*backfills     // BackfillTasks, PlanBackfill
	*agenda        // Day, ScheduleWeek, ScheduleTimes

	config Config
}

// New checks the configuration and fills in the defaults.
func New(c Config) (*Service, error) {
	if c.Repository.Explorer == nil {
		return nil, errors.New("a service needs a repository")
	}
	if c.Database == "" {
		c.Database = tx.Default
	}
	if c.Actor == "" {
		c.Actor = CurrentActor()
	}
	if c.Dead == nil {
		c.Dead = job.DeadOwner
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = job.DefaultHeartbeat
	}
	return compose(c, c.Repository, actor(c.Actor)), nil
}

func compose(c Config, r ports.Repository, by actor) *Service {
	tables := &schema{
		tables: c.Schema, checkpoints: c.Checkpoints, provider: c.Provider, database: c.Database, autoMigrate: c.AutoMigrate, audit: c.Acts, actor: by,
	}
	judge := &judge{schema: tables, records: r, dead: c.Dead, now: c.Now}
	work := &workload{records: r, workers: c.Workers, engine: c.Engine}
	view := &viewer{judge: judge, work: work}
	jobs := &jobs{
		judge: judge, records: r, files: c.Files, build: c.Jobs, definitions: c.Definitions, registry: c.Registry, places: c.Places,
		compiler: jobfile.Deps{Provider: c.Provider, FileMode: c.FileMode, Tasks: c.Tasks, Distributed: c.Distributed, Secrets: c.Secrets},
	}
	judge.carries = jobs.carries
	history := &history{judge: judge, view: view, work: work, records: r, steps: r, recent: c.JobHistory, acts: c.Acts}
	changes := &comparison{records: r, checkpoints: c.Checkpoints, registry: c.Registry}
	admission := &admission{schema: tables, judge: judge, records: r}
	chooser := &chooser{schema: tables, judge: judge, jobs: jobs, records: r}
	restarts := &restarts{judge: judge, jobs: jobs, admission: admission, records: r}
	parked := &parked{jobs: jobs, launcher: c.Launcher, records: r}
	explainer := &explainer{
		judge: judge, view: view, work: work, jobs: jobs, changes: changes, admission: admission, checkpoints: c.Checkpoints, records: r,
	}
	progressed := &progress{judge: judge, view: view, work: work, jobs: jobs, records: r}
	flow := &flows{jobs: jobs, explain: explainer, records: r}
	redrives := &redrives{judge: judge, jobs: jobs, records: r}
	active := &runnings{}
	last := &recent{records: c.JobHistory}
	acts := &acts{
		schema: tables, judge: judge, view: view, parked: parked, active: active, records: r, launcher: c.Launcher, tasks: c.OpenTasks, notify: c.Notify, actor: by,
	}
	times := &schedules{schema: tables, jobs: jobs, registered: c.Definitions, figures: c.Figures, now: c.Now, actor: by}
	files := &fileChecks{jobs: jobs, registered: c.Definitions, stored: map[string][]FileProblem{}}
	runs := &runs{
		schema: tables, judge: judge, jobs: jobs, chooser: chooser, restarts: restarts, redrives: redrives,
		changes: changes, admission: admission, parked: parked, view: view, history: history, launcher: c.Launcher, actor: by, active: active, records: r,
	}
	return &Service{
		config: c, schema: tables, jobs: jobs, chooser: chooser, history: history, skips: &skips{jobs: jobs, records: r},
		runs: runs, acts: acts,
		bulks: &bulks{
			history: history, judge: judge, view: view, restarts: restarts, redrives: redrives, acts: acts, changes: changes, admission: admission, records: r, actor: by,
		},
		backfills:     &backfills{runs: runs, records: r},
		requests:      &requests{schema: tables, view: view, records: r},
		progress:      progressed,
		explainer:     explainer,
		flows:         flow,
		inspector:     &inspector{history: history, explainer: explainer, flows: flow, progress: progressed, records: r},
		comparer:      &comparer{view: view, jobs: jobs, records: r},
		executionLogs: &executionLogs{r},
		parted:        &parted{view: view, records: r},
		timelines:     &timelines{judge: judge, records: r},
		curves:        &curves{records: r, now: c.Now},
		plans: &plans{
			schema: tables, judge: judge, jobs: jobs, chooser: chooser, restarts: restarts, changes: changes, admission: admission, tasks: c.OpenTasks,
			redriving: redrives, attempts: r, records: r,
		},
		overviews: &overviews{
			judge: judge, view: view, work: work, jobs: jobs, schedules: times, files: files, recent: last, steps: newStepKinds(jobs, r),
			heartbeat: c.Heartbeat, attention: c.Attention, records: r,
		},
		summaries:  &summaries{judge: judge, jobs: jobs, files: files, recent: last, registered: c.Definitions, attention: c.Attention},
		trends:     &trends{judge: judge, recent: last, records: r},
		skipGroups: &skipGroups{judge: judge, records: c.JobHistory},
		schedules:  times,
		agenda:     &agenda{judge: judge, registered: c.Definitions, history: c.JobHistory, recent: last},
		watcher:    &watcher{c.Changes},
	}
}
