package batch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/runlog"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/secret"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	eventlog "github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/slog"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/repository/tasks"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Module provides an *App and its parts to an fx application of your own. Add registrations such as Reader
// next to it. On stop the App waits for its work before the databases are closed.
func Module(s Settings) fx.Option {
	return fx.Module("surfin",
		fx.Supply(s),
		fx.Provide(assembly.Built.Registry, newProvider, newVault, newPlaces, newRunLog, newObserving, newHistory, newRepository, newTaskRepository, newEngine, newCheckpoints, newLauncher, newService, newStepTasks, newTasks, newApp),
	)
}

func newProvider(lc fx.Lifecycle, s Settings, lent lentDatabases) (*gormdb.DBProvider, tx.Provider, error) {
	configs, err := lent.configs(s)
	if err != nil {
		return nil, nil, err
	}
	provider, err := gormdb.Open(context.Background(), configs)
	if err != nil {
		return nil, nil, err
	}
	lc.Append(fx.StopHook(provider.Close))
	return provider, provider, nil
}

func newVault(s Settings) *secret.Vault {
	if s.Secrets != nil {
		return s.Secrets
	}
	v := secret.NewVault(os.Environ(), "", nil)
	for _, name := range s.Names() {
		v.LearnURL("database "+name, s.Databases[name].URL)
	}
	for _, c := range s.API.Clients {
		v.Learn("the token of client "+c.Name, c.Token)
	}
	return v
}

type registered struct {
	fx.In
	List []core.Observer `group:"surfin.observers"`
	Logs []*slog.Logger  `group:"surfin.logs"`
}

// newRunLog returns the log of the executions, which newApp connects with the history.
func newRunLog(s Settings, v *secret.Vault) *runlog.Log {
	limit := s.Log.ExecutionBytes
	if limit == 0 {
		limit = defaultLogBytes
	}
	return runlog.New(runlog.Config{Limit: limit, Mask: v.Mask, IsAway: errorclass.IsUnreachable})
}

const defaultLogBytes = 4 << 20

type observing struct{ core.Observer }

// The log of the executions comes first: another observer may end the process.
func newObserving(r registered, log *runlog.Log, v *secret.Vault) observing {
	list := append([]core.Observer{log}, r.List...)
	if len(r.Logs) == 0 {
		list = append(list, eventlog.New(slog.Default()))
	}
	for _, log := range r.Logs {
		if log != nil {
			list = append(list, eventlog.New(log))
		}
	}
	return observing{secret.Masked(core.Observers(list...), v.Values)}
}

type controller interface {
	Control(name string) (tx.Database, error)
}

type history struct{ tx.Database }

// Heartbeats, stop requests and launches have their own connections and never wait for the data's (rule R6).
// Work in a chunk's transaction still joins it: the database's name is the same.
func newHistory(p tx.Provider, s Settings) (history, error) {
	find := p.Database
	if c, ok := p.(controller); ok { // also one that decorates ours
		find = c.Control
	}
	db, err := find(s.Repository.Database)
	return history{db}, err
}

// The engine is notified of parts planned here.
func newRepository(h history, s Settings, o observing, v *secret.Vault, e engine.Engine) (*repository.Repository, ports.Repository) {
	r := repository.New(h.Database, repository.Options{Prefix: s.Repository.Prefix, Observer: o.Observer, Announcer: runtime.Announcer{Engine: e}, Mask: v.Values})
	return r, r.Patient()
}

// For steps in other databases (rule C18).
func newCheckpoints(r *repository.Repository, p tx.Provider, s Settings) *repository.Checkpoints {
	return repository.NewCheckpoints(r, p, repository.CheckpointOptions{AutoMigrate: s.AutoMigrate.Applies, Wait: 2 * s.Lease})
}

func newExecutor(t ports.Transitions, r *repository.Repository, o core.Observer, places *place.Set) *step.SimpleStepExecutor {
	executor := step.NewSimpleStepExecutor(t, r.Database(), o)
	executor.Places = places
	return executor
}

func newPlaces(r *registry.Registry, s Settings, v *secret.Vault) (*place.Set, error) {
	return operator.NewPlaces(r, s.Places, v.Lookup)
}

func newLauncher(w *repository.Repository, r ports.Repository, c *repository.Checkpoints, p tx.Provider, s Settings, o observing, places *place.Set) (*job.Launcher, error) {
	return job.NewLauncher(job.Config{
		Repository: r, Stores: c, Observer: o.Observer, Lease: s.Lease, Heartbeat: s.Heartbeat,
		Executor: newExecutor(r.Transitions, w, o.Observer, places), RemoveLeft: removeLeft(places),
		Apart: func(ctx context.Context) (context.Context, error) { return tx.Apart(ctx, p.Names()) },
	})
}

func removeLeft(places *place.Set) func(ctx context.Context, left ports.LeftBehind) error {
	return func(ctx context.Context, left ports.LeftBehind) error {
		ctx = place.With(ctx, places)
		var errs []error
		for _, at := range chunk.WriterPositions(left.Position) {
			errs = append(errs, filestream.RemoveLeft(ctx, left.Attempt, at))
		}
		return errors.Join(errs...)
	}
}

// App runs jobs inside a Go program. It is safe for concurrent use; Close it. Besides Work and Close it has, like the
// command:
//
//	Prepare(ctx)                    check the tables of the history, or make them (Settings.AutoMigrate)
//	Run(ctx, RunRequest)            run a job, and wait for its end
//	Start(ctx, RunRequest)          start a job, which outlives ctx
//	Restart(ctx, RestartRequest)    resume a failed or stopped execution
//	Redrive(ctx, RedriveRequest)    run skipped items again
//	Stop(ctx, id)                   stop an execution after its current chunk
//	Abandon(ctx, id)                give up an execution, which then is never restarted
//	Recover(ctx)                    end the executions of killed processes, for a restart
//	Purge(ctx, PurgeRequest)        delete old executions
//
// and Plan, Explain, Show, List, Progress, Skips, Schedules, Register and others, with the requests of the command.
type App struct {
	*operator.Service
	// Repository reads the history: Execution, Steps, ...
	Repository ports.Repository
	Tasks      *runtime.TaskService
	// Databases are by the names in the settings: for transactions of your own, in which a move of a guarded row
	// or a submission of tasks takes part.
	Databases tx.Provider
	// Observer combines all observers and the log. Pass it to guard.NewTable and inbox.Options.
	Observer core.Observer

	parts parts
	fx    *fx.App // nil in an application of the author's own
	// waited: Close has waited for running work, as long as allowed.
	waited atomic.Bool
}

type parts struct {
	fx.In
	Settings    Settings
	Provider    tx.Provider
	Repository  *repository.Repository
	Checkpoints *repository.Checkpoints
	Launcher    *job.Launcher
	Observer    observing
	Service     *operator.Service
	Tasks       *taskParts
	TaskService *runtime.TaskService
	RunLog      *runlog.Log
	Places      *place.Set
}

// New builds an application and opens the databases. It logs to slog.Default() unless Log sets a logger.
func New(ctx context.Context, s Settings, opts ...fx.Option) (*App, error) {
	var a *App
	whole := fx.New(fx.NopLogger, Module(s), fx.Options(opts...), fx.Populate(&a))
	if err := whole.Err(); err != nil {
		cause := rootCause(err)
		if missing := assembly.CheckNeeds(Module(s), opts...); missing != nil {
			cause = missing
		}
		return nil, errors.Join(cause, whole.Stop(context.WithoutCancel(ctx)))
	}
	a.fx = whole
	if err := whole.Start(ctx); err != nil {
		return nil, rootCause(err)
	}
	return a, nil
}

type serviceParts struct {
	fx.In
	Settings    Settings
	Registry    *registry.Registry
	Provider    tx.Provider
	Repository  *repository.Repository
	Checkpoints *repository.Checkpoints
	Launcher    *job.Launcher
	Engine      engine.Engine
	Steps       *stepTasks
	Workers     *tasks.Repository
	Vault       *secret.Vault
	Places      *place.Set
	Jobs        assembly.Jobs
}

func newService(p serviceParts) (*operator.Service, error) {
	files, err := p.Jobs.Load(p.Registry)
	if err != nil {
		return nil, err
	}
	return operator.New(operator.Config{
		Files: files, Repository: p.Repository.Patient(), Launcher: p.Launcher, Provider: p.Provider, Registry: p.Registry, FileMode: p.Settings.Files.Mode,
		Database: p.Settings.Repository.Database, Schema: newSchemas(p.Repository, p.Engine), AutoMigrate: p.Settings.AutoMigrate.Applies, Checkpoints: p.Checkpoints,
		Definitions: p.Repository, Tasks: p.Steps, OpenTasks: p.Steps, Distributed: p.Engine.Capabilities().Distributed,
		Workers: p.Workers, Figures: p.Repository, Acts: p.Repository, Changes: p.Repository, Attention: p.Repository, JobHistory: p.Repository, Heartbeat: p.Settings.Heartbeat, Engine: p.Engine.Capabilities().Name, Secrets: p.Vault, Places: p.Places, Paths: p.Settings.API.Paths,
	})
}

func newApp(lc fx.Lifecycle, p parts, r registered) *App {
	if reader, ok := core.Observers(r.List...).(core.FiguresReader); ok {
		reader.ReadFigures(p.Service.Figures)
	}
	a := &App{Service: p.Service, Repository: p.Repository.Ports(), Tasks: p.TaskService, Databases: p.Provider, Observer: p.Observer.Observer, parts: p}
	p.RunLog.Open(p.Repository, func(e core.Event) { a.Observer.Observe(context.Background(), e) })
	lc.Append(fx.StopHook(func(ctx context.Context) error {
		var err error
		if !a.waited.Load() {
			err = p.Service.Close(ctx)
		}
		p.RunLog.Close(ctx)
		return err
	}))
	return a
}

// Close stops the jobs of this App, waits for them, then closes the databases and stops everything started by
// opts. ctx limits the wait: running work then loses its databases, and can be restarted. Module leaves the
// databases to its application.
func (a *App) Close(ctx context.Context) error {
	waiting := a.Service.Close(ctx)
	a.waited.Store(true)
	if a.fx == nil {
		return waiting
	}
	if err := errors.Join(waiting, a.fx.Stop(context.WithoutCancel(ctx))); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}
