package batch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"reflect"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/engine/local"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/inbox"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/repository/tasks"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// fx value groups of tasks.
const (
	groupHandlers     = `group:"surfin.handlers,flatten"`
	groupDeciders     = `group:"surfin.deciders,flatten"`
	groupDeciderNames = `group:"surfin.decidernames"`
)

// Handler registers a task type's handler: constructor is func(deps...) (H, error), or without the error, H
// implements task.Handler, fx provides deps. It is called once per worker process; tasks run in parallel.
func Handler(taskType string, constructor any) fx.Option {
	return fx.Options(
		registerNamed("handler of tasks", taskType, constructor, groupHandlers, func(make func() (task.Handler, error)) runtime.NamedHandler {
			return runtime.NamedHandler{Type: taskType, New: make}
		}),
		fx.Supply(fx.Annotate(assembly.HandlerType(taskType), fx.ResultTags(assembly.GroupHandlerTypes))),
	)
}

// TaskDecider registers a task.Decider under name for failed attempts; see Handler. "backoff" replaces the
// default. Only workers that have a group's decider execute its tasks.
func TaskDecider(name string, constructor any) fx.Option {
	return fx.Options(
		registerNamed("decider of tasks", name, constructor, groupDeciders, func(make func() (task.Decider, error)) runtime.NamedDecider {
			return runtime.NamedDecider{Name: name, New: make}
		}),
		fx.Supply(fx.Annotate(deciderName(name), fx.ResultTags(groupDeciderNames))),
	)
}

type deciderName string

func registerNamed[T, N any](kind, name string, constructor any, group string, named func(func() (T, error)) N) fx.Option {
	c, err := inspect(constructor, implements[T])
	if err == nil && c.config != nil {
		err = fmt.Errorf("the constructor takes a %v: the work of a task is in its payload", c.config)
	}
	if err == nil && len(c.contexts) > 0 {
		err = fmt.Errorf("the constructor takes a %v: a task belongs to no step", reflect.TypeFor[BuildContext]())
	}
	if err != nil {
		return fx.Error(fmt.Errorf("%s %q: %w", kind, name, err))
	}
	sig := componentOf[T]()
	out := []reflect.Type{reflect.TypeFor[[]N](), reflect.TypeFor[error]()}
	provider := reflect.MakeFunc(reflect.FuncOf(c.deps, out, false), func(deps []reflect.Value) []reflect.Value {
		err := reflect.Zero(out[1])
		if missing := c.missing(deps, kind, name); missing != nil {
			err = reflect.ValueOf(missing)
		}
		list := []N{named(func() (made T, err error) {
			v, err := c.call(nil, BuildContext{}, deps, sig)
			if err != nil {
				return made, err
			}
			return v.(T), nil //nolint:forcetypeassert // erase has checked it
		})}
		return []reflect.Value{reflect.ValueOf(list), err}
	})
	return fx.Options(provideNeeds(c.needs(kind, name)), fx.Provide(fx.Annotate(provider.Interface(), c.optionalDeps(), fx.ResultTags(group))))
}

type taskRegistered struct {
	fx.In
	Handlers []runtime.NamedHandler `group:"surfin.handlers"`
	Deciders []runtime.NamedDecider `group:"surfin.deciders"`
}

type taskParts struct {
	Database   tx.Database
	Repository *tasks.Repository
	Engine     engine.Engine
	Catalog    *runtime.Catalog
	Sweep      *runtime.Sweep
	Steps      *runtime.StepTasks
	Events     *inbox.Events
	Places     []ports.Places
}

// stepTasks are filled late: handlers may need the service of jobs.
type stepTasks struct{ *runtime.StepTasks }

func newStepTasks() *stepTasks { return &stepTasks{} }

// Handlers implements jobfile.Tasks. It is called first.
func (s *stepTasks) Handlers() (known []string, closed bool) {
	if s.StepTasks == nil { // no *App
		return nil, true
	}
	return s.StepTasks.Handlers()
}

func (s *stepTasks) HandlerOff(handler string) (how string) {
	if s.StepTasks == nil {
		return ""
	}
	return s.StepTasks.HandlerOff(handler)
}

func (s *stepTasks) HandlerWarnings(ctx context.Context, handler string) (warnings []string, err error) {
	if s.StepTasks == nil {
		return nil, nil
	}
	return s.StepTasks.HandlerWarnings(ctx, handler)
}

func (s *stepTasks) GiveUp(ctx context.Context, instance core.JobInstanceID, reason string) error {
	if s.StepTasks == nil {
		return nil
	}
	return s.StepTasks.GiveUp(ctx, instance, reason)
}

type taskNeeds struct {
	fx.In
	Settings   Settings
	History    history
	Repository *tasks.Repository
	Executions *repository.Repository
	Engine     engine.Engine
	Jobs       *operator.Service
	Steps      *stepTasks
	Observer   observing
	Vault      *secret.Vault
}

func newTasks(n taskNeeds, r taskRegistered) (*taskParts, *runtime.TaskService, error) {
	h, stored, e, jobs := n.History, n.Repository, n.Engine, n.Jobs
	catalog, err := runtime.NewCatalog(append(assembly.StockHandlers(jobs, stored, n.Settings, n.Vault), r.Handlers...), r.Deciders)
	if err != nil {
		return nil, nil, err
	}
	sweep, err := runtime.NewSweep(h.Database, stored, e, catalog)
	if err != nil {
		return nil, nil, err
	}
	events := inbox.NewEvents(h.Database, cmp.Or(n.Settings.Repository.Prefix, repository.DefaultPrefix))
	service, err := runtime.NewTaskService(runtime.TaskServiceConfig{
		Repository: stored.Repository, Engine: e, Database: h.Database, Catalog: catalog, Logs: n.Settings.Tasks.Logs != "", Actor: operator.CurrentActor(),
		Events: events, Places: places(stored, n.Executions), Leader: stored.Leader,
		Runs: runtime.TimeRuns{Definitions: n.Executions, Run: operator.ScheduledRuns(jobs)},
		Mask: n.Vault.Mask,
	})
	if err != nil {
		return nil, nil, err
	}
	stored.SetWaiters(n.Executions)
	n.Steps.StepTasks, err = runtime.NewStepTasks(runtime.StepTasksConfig{
		Service: service, Deliveries: stored, Lease: n.Settings.Lease, Heartbeat: n.Settings.Heartbeat,
		Tasks: runtime.Tasks{Executions: stored, Maintenance: stored, Database: h.Database, Catalog: catalog, Version: programVersion(), Observer: n.Observer.Observer},
		Name: func() (string, error) {
			owner, err := job.CurrentOwner()
			return workerName(owner), err
		},
		Local: func(source runtime.Source) (engine.Engine, error) {
			return local.New(local.Config{Database: h.Database, Source: source, Log: slog.Default()})
		},
	})
	return &taskParts{Database: h.Database, Repository: stored, Engine: e, Catalog: catalog, Sweep: sweep, Steps: n.Steps.StepTasks, Events: events, Places: places(stored, n.Executions)}, service, err
}

func places(stored ports.Places, executions *repository.Repository) []ports.Places {
	return []ports.Places{stored, executions}
}
