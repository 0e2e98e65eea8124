package api

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type (
	workerView struct {
		Name        string            `json:"name"`
		State       string            `json:"state" doc:"ACTIVE, DRAINING (it is stopping), GONE (it left) or LOST (its lease expired)"`
		Leads       bool              `json:"leads" doc:"It leads: it starts scheduled runs, and assigns work with a placement"`
		Labels      map[string]string `json:"labels" doc:"The labels with which placements are compared"`
		Types       []string          `json:"types" doc:"The types of tasks that it executes"`
		Deciders    []string          `json:"deciders" doc:"The deciders that it has"`
		Parts       bool              `json:"parts" doc:"Whether it runs partitions and continues parked executions"`
		Capacity    int               `json:"capacity"`
		Executing   int               `json:"executing" doc:"Number of tasks that it has"`
		Busy        int               `json:"busy" doc:"Number of slots that tasks and parts use"`
		Version     string            `json:"version"`
		StartedAt   time.Time         `json:"started_at"`
		HeartbeatAt time.Time         `json:"heartbeat_at"`
		LeaseLeft   float64           `json:"lease_left" doc:"Seconds until its lease ends; negative after its end"`
		Held        int               `json:"held" doc:"Number of tasks, parts and executions that it has"`
		Holds       []taskports.Held  `json:"holds" doc:"The first 100 of them"`
	}
	workerList struct {
		Workers    []workerView               `json:"workers"`
		Leader     *taskports.Leader          `json:"leader,omitempty" doc:"The worker that leads, or led last"`
		Processes  []runtime.ProcessView      `json:"processes" doc:"Servers, and commands, that run executions now"`
		Types      []runtime.TypeView         `json:"types" doc:"The types of tasks that wait, are executed, or that a live worker executes"`
		Placements []runtime.PlacementView    `json:"placements" doc:"Work that waits to be assigned, by its placement: at most 200"`
		More       bool                       `json:"more,omitempty" doc:"Processes hold more work than was read"`
		Waiting    []string                   `json:"waiting_types" doc:"Types of tasks that wait and that no live worker executes"`
		Deciders   []taskports.WaitingDecider `json:"waiting_deciders" doc:"Deciders that tasks wait for and that no live worker has"`
	}
	settingList struct {
		Settings []taskports.Setting `json:"settings"`
	}
	setInput struct {
		Name string `path:"name" maxLength:"100" doc:"Name of a setting"`
		KeyHeader
		Body struct {
			Value string `json:"value" maxLength:"1000"`
		}
	}
	changed struct {
		ID      string `json:"id" doc:"The setting, or the job"`
		Status  string `json:"status" doc:"The value, or enabled or disabled"`
		Applied bool   `json:"applied" doc:"False if nothing changed"`
		Version string `json:"version,omitempty" doc:"Of a registration: the hash of the job file and of the files that it names"`
		Before  string `json:"before,omitempty" doc:"The version that was registered before"`
		Warnings
	}
	// Warnings is embedded in answers about work that workers begin.
	Warnings struct {
		Warnings []string `json:"warnings,omitempty" doc:"A warning that no worker is alive, so nothing is started (rule S8)"`
	}
	definitionList struct {
		Definitions []operator.DefinitionView `json:"definitions"`
		Warnings
	}
	scheduleList struct {
		Schedules []operator.ScheduleView `json:"schedules"`
		Warnings
	}
	schedulesInput struct {
		Count int `query:"count" minimum:"0" maximum:"1000" doc:"How many times of each job; 0 means 1"`
	}
	switchInput struct {
		JobPath
		KeyHeader
	}
)

func (a *api) addWorkers(h huma.API) {
	huma.Register(h, get(h, "list-workers", "/v1/workers", "The workers, past and present", "With the work that each holds, the types of tasks, and the work that waits for a worker."),
		func(ctx context.Context, _ *struct{}) (*output[workerList], error) {
			return answer(a, ctx, func() (*workerList, error) { return a.workers(ctx) })
		})
	huma.Register(h, get(h, "list-settings", "/v1/settings", "The shared settings", ""),
		func(ctx context.Context, _ *struct{}) (*output[settingList], error) {
			return answer(a, ctx, func() (*settingList, error) {
				list, err := a.Tasks.Settings(ctx)
				return &settingList{append([]taskports.Setting{}, list...)}, err
			})
		})
	huma.Register(h, post(h, "change-setting", "/v1/settings/{name}", "Change a shared setting", "The leader reads it at its next poll."),
		func(ctx context.Context, in *setInput) (*keyed[changed], error) {
			return together(a, ctx, in.Key, request{"change-setting", in.Name, in.Body}, func(ctx context.Context, _ ports.RequestKey) (*changed, error) {
				if err := noNUL("value", in.Body.Value); err != nil {
					return nil, err
				}
				acted, err := a.Tasks.Set(ctx, in.Name, in.Body.Value, runtime.By{Actor: actorOf(ctx)})
				if err != nil {
					return nil, err
				}
				return &changed{ID: in.Name, Status: in.Body.Value, Applied: acted.Answer == string(core.Applied)}, nil
			})
		})
}

func (a *api) workers(ctx context.Context) (*workerList, error) {
	work, err := a.Tasks.Work(ctx)
	if err != nil {
		return nil, err
	}
	deciders, err := a.Tasks.WaitingDeciders(ctx)
	return &workerList{
		Workers: views(work.Workers, func(w runtime.WorkerView) workerView {
			return workerView{
				w.Name, w.State, w.Leads, maps.Collect(maps.All(w.Labels)), append([]string{}, w.Types...), append([]string{}, w.Deciders...), w.Parts, w.Capacity, w.Executing, w.Busy,
				w.Version, w.StartedAt, w.HeartbeatAt, w.LeaseLeft, w.Held, w.Holds,
			}
		}),
		Leader: work.Leader, Processes: work.Processes, Types: work.Types, Placements: work.Placements, More: work.More, Waiting: work.InVain(),
		Deciders: append([]taskports.WaitingDecider{}, deciders...),
	}, err
}

func (a *api) warnIfNothingLeads(ctx context.Context, may bool) (Warnings, error) {
	if !may {
		return Warnings{}, nil
	}
	lacking, err := a.Tasks.NoWorker(ctx)
	if err != nil || lacking == "" {
		return Warnings{}, err
	}
	return Warnings{[]string{"no worker is alive, so registered jobs that are due do not start; start a worker, or the server with --worker"}}, nil
}

func (a *api) addDefinitions(h huma.API) {
	huma.Register(h, get(h, "list-definitions", "/v1/definitions", "The registered jobs", "Workers start them at the times of their schedules; a server does so only with --worker. The response has a warning if no worker is alive."),
		func(ctx context.Context, _ *struct{}) (*output[definitionList], error) {
			return answer(a, ctx, func() (*definitionList, error) {
				list, err := a.Service.Definitions(ctx)
				if err != nil {
					return nil, err
				}
				warnings, err := a.warnIfNothingLeads(ctx, len(list) > 0)
				return &definitionList{list, warnings}, err
			})
		})
	huma.Register(h, get(h, "list-schedules", "/v1/schedules", "The schedules of registered jobs", "The enabled ones have their next times. The response has a warning if no worker is alive, because then nothing starts them."),
		func(ctx context.Context, in *schedulesInput) (*output[scheduleList], error) {
			return answer(a, ctx, func() (*scheduleList, error) {
				list, err := a.Service.Schedules(ctx, operator.SchedulesRequest{Count: in.Count})
				if err != nil {
					return nil, err
				}
				warnings, err := a.warnIfNothingLeads(ctx, slices.ContainsFunc(list, func(s operator.ScheduleView) bool { return s.Enabled }))
				return &scheduleList{list, warnings}, err
			})
		})
	a.addScheduleTimes(h)
	a.addScheduleActs(h)
	a.addSwitch(h, "enable", "Enable the schedule of a registered job", "Runs that were due while it was disabled are not caught up.", (*operator.Service).EnableAnswer)
	a.addSwitch(h, "disable", "Disable the schedule of a registered job", "Running executions and submitted runs continue.", (*operator.Service).DisableAnswer)
}

func (a *api) addSwitch(h huma.API, act, summary, text string, do func(*operator.Service, context.Context, string) (*operator.DefinitionView, core.Answer, error)) {
	huma.Register(h, post(h, act+"-definition", "/v1/definitions/{job}/"+act, summary, text),
		func(ctx context.Context, in *switchInput) (*keyed[changed], error) {
			return together(a, ctx, in.Key, request{act + "-definition", in.Job, nil}, func(ctx context.Context, _ ports.RequestKey) (*changed, error) {
				view, answered, err := do(a.Service, ctx, in.Job)
				if err != nil {
					return nil, err
				}
				got := switched(view, answered == core.Applied)
				got.Warnings, err = a.warnIfNothingLeads(ctx, view.Enabled)
				return &got, err
			})
		})
}
