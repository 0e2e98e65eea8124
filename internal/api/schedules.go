package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/operator"
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
)

func (a *api) addScheduleTimes(h huma.API) {
	huma.Register(h, get(h, "schedule-week", "/v1/schedules/week", "A week of all schedules",
		"The enabled schedules with their times in the week, and what became of the past ones: whether the run began, how late, and how it ended; or whether the time was missed, left out, or the schedule was disabled. A day has 23 or 25 hours if the clock changes. Of a schedule with more than 170 times the past ones are not looked up."),
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
