package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/wording"
)

type (
	weekInput struct {
		Week     string `query:"week" maxLength:"20" doc:"An ISO week, such as 2026-W48; by default the current one"`
		Timezone string `query:"timezone" maxLength:"60" doc:"A zone of the IANA database, in which days begin; by default UTC"`
		After    string `query:"after" maxLength:"200" doc:"Only schedules of jobs with a greater name: next of the previous page"`
		Limit    int    `query:"limit" minimum:"0" maximum:"100" doc:"Number of schedules; 0 means 30"`
	}
	scheduleTimesInput struct {
		JobPath
		Before time.Time `query:"before" doc:"Only past times before this one: next of the previous page, which has no times to come"`
		Ahead  int       `query:"ahead" minimum:"0" maximum:"200" doc:"Number of times to come; 0 means 5"`
		Limit  int       `query:"limit" minimum:"0" maximum:"200" doc:"Number of past times; 0 means 50"`
	}
	timeRunInput struct {
		JobPath
		KeyHeader
		Body *struct {
			Time   string `json:"time,omitempty" maxLength:"40" doc:"A local time of the schedule's zone, such as 2026-11-27T02:30, or an instant with its offset; empty means now"`
			DryRun bool   `json:"dry_run,omitempty" doc:"Only show the run, and the task that the time has"`
			ReasonBody
		}
	}
)

func (a *api) addScheduleTimes(h huma.API) {
	huma.Register(h, get(h, "schedule-week", "/v1/schedules/week", "A week of all schedules",
		"The schedules with their times in the week, and what became of the past ones: whether the run began, how late, and how it ended; or whether the time was missed, left out, or the schedule was disabled. A day has 23 or 25 hours if the clock changes. Of a schedule with more than 170 times the past ones are not looked up."),
		func(ctx context.Context, in *weekInput) (*output[operator.ScheduleWeek], error) {
			return answer(a, ctx, func() (*operator.ScheduleWeek, error) {
				found, err := a.Service.ScheduleWeek(ctx, operator.WeekRequest{Week: in.Week, Timezone: in.Timezone, After: in.After, Limit: in.Limit})
				if err != nil {
					return nil, err
				}
				return wording.ScheduleWeek(found), nil
			})
		})
	huma.Register(h, get(h, "schedule-times", "/v1/schedules/{job}/times", "The times of a schedule, and what became of them",
		"The next times of a registered job, and a page of the past ones, newest first, with their outcomes. Times before the job was registered, or before its times changed, are not listed."),
		func(ctx context.Context, in *scheduleTimesInput) (*output[operator.ScheduleTimes], error) {
			return answer(a, ctx, func() (*operator.ScheduleTimes, error) {
				found, err := a.Service.ScheduleTimes(ctx, operator.ScheduleTimesRequest{Job: in.Job, Before: in.Before, Ahead: in.Ahead, Limit: in.Limit})
				if err != nil {
					return nil, err
				}
				return wording.ScheduleTimes(found), nil
			})
		})
}

func (a *api) addScheduleActs(h huma.API) {
	huma.Register(h, post(h, "register-job", "/v1/jobs/{job}/register", "Register a job",
		"Stores the job's file, with the files that it names, in the history: workers start it at the times of its schedule. Only for jobs that this server offers. A file with an error is refused, and the registered version stays."),
		func(ctx context.Context, in *switchInput) (*keyed[changed], error) {
			return together(a, ctx, in.Key, request{"register-job", in.Job, nil}, func(ctx context.Context, _ ports.RequestKey) (*changed, error) {
				return registerJob(ctx, a, in.Job)
			})
		})
	huma.Register(h, post(h, "run-definition", "/v1/definitions/{job}/run", "Run a scheduled job now, or for a given time",
		"Submits the task that the schedule would submit for the time, with its parameters: each time has one task (rule OP18). A disabled schedule can be run, too. With overlap: forbid it is refused while a run of the schedule is not over."),
		func(ctx context.Context, in *timeRunInput) (*keyed[taskports.TimeRun], error) {
			if in.Body != nil && in.Body.DryRun {
				in.Key = ""
			}
			return together(a, ctx, in.Key, request{"run-definition", in.Job, in.Body}, func(ctx context.Context, _ ports.RequestKey) (*taskports.TimeRun, error) {
				req := runtime.TimeRunRequest{Job: in.Job, By: runtime.By{Actor: actorOf(ctx)}}
				if b := in.Body; b != nil {
					req.Time, req.DryRun, req.By.Reason = b.Time, b.DryRun, b.Reason
				}
				if err := noNUL("reason", req.By.Reason); err != nil {
					return nil, err
				}
				return a.Tasks.RunTime(ctx, req)
			})
		})
}

func registerJob(ctx context.Context, a *api, job string) (*changed, error) {
	file, err := a.Jobs.File(job)
	if err != nil {
		return nil, err
	}
	made, err := a.Service.Register(ctx, operator.RegisterRequest{Checked: file})
	if err != nil {
		return nil, err
	}
	got := switched(&made.DefinitionView, made.Changed)
	got.Version, got.Before = made.Version, made.Before
	got.Warnings, err = a.warnIfNothingLeads(ctx, made.Enabled && made.Schedule != nil)
	return &got, err
}

func switched(d *operator.DefinitionView, applied bool) changed {
	status := "disabled"
	if d.Enabled {
		status = "enabled"
	}
	return changed{ID: d.Job, Status: status, Applied: applied}
}
