package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type (
	overviewInput struct {
		Since  time.Time `query:"since" doc:"Only ended executions that were created at or after this time; by default in the last 30 days"`
		Window int64     `query:"window" minimum:"0" maximum:"31536000" doc:"Seconds in which ended executions are counted, and times count that the scheduler left out; 0 means 86400"`
		Before int64     `query:"before" minimum:"0" doc:"Only ended executions with a smaller number: next of the previous page"`
		Limit  int       `query:"limit" minimum:"0" maximum:"200" doc:"Number of ended executions on a page; 0 means 50"`
	}
	dayInput struct {
		Back  int64 `query:"back" minimum:"0" maximum:"2678400" doc:"Seconds before now; 0 means 86400"`
		Ahead int64 `query:"ahead" minimum:"0" maximum:"2678400" doc:"Seconds after now; 0 means 43200"`
		Limit int   `query:"limit" minimum:"0" maximum:"200" doc:"Number of jobs; the others are added up. 0 means 30"`
	}
	summaryInput struct {
		Job   string `query:"job" maxLength:"200" doc:"Only this job"`
		After string `query:"after" maxLength:"200" doc:"Only jobs with a greater name: next of the previous page"`
		Limit int    `query:"limit" minimum:"0" maximum:"1000" doc:"Size of the page; 0 means 200"`
	}
)

func (a *api) addOverview(h huma.API) {
	huma.Register(h, get(h, "overview", "/v1/overview", "The problems that need a person",
		"Each with its reason, the time since when, and the possible actions, the most urgent first: by reason, then jobs with a schedule. Ended executions that no later attempt, redrive or abandon has cleared are in pages, newest first. With the running executions, and counts of those that ended in a window."),
		func(ctx context.Context, in *overviewInput) (*output[operator.Overview], error) {
			return answer(a, ctx, func() (*operator.Overview, error) {
				found, err := a.Service.Overview(ctx, operator.OverviewRequest{
					Since: in.Since, Window: time.Duration(in.Window) * time.Second, Before: core.JobExecutionID(in.Before), Limit: in.Limit, Catalog: a.Jobs,
				})
				if err != nil {
					return nil, err
				}
				return wording.Overview(found), nil
			})
		})
	huma.Register(h, get(h, "day", "/v1/day", "The executions and the planned runs of all jobs around now",
		"By default of the last 24 hours and the next 12: the executions of each job, the next times of its schedule, and the median duration of its last completed executions. The most important jobs come first: the newest execution failed, then running ones, with failed executions, due next, and the others. Of a job with more than 60 executions those that completed are added up."),
		func(ctx context.Context, in *dayInput) (*output[operator.Day], error) {
			return answer(a, ctx, func() (*operator.Day, error) {
				return a.Service.Day(ctx, operator.DayRequest{Back: time.Duration(in.Back) * time.Second, Ahead: time.Duration(in.Ahead) * time.Second, Limit: in.Limit})
			})
		})
	huma.Register(h, get(h, "summary", "/v1/summary", "All jobs with their last executions",
		"Jobs of this server, registered ones and those of the history, by name: the last 20 executions, success rate, median and 95th percentile of duration and rows of the last 30 completed, the next time, the skipped items that are left, and the mistakes in their files."),
		func(ctx context.Context, in *summaryInput) (*output[operator.JobPage], error) {
			return answer(a, ctx, func() (*operator.JobPage, error) {
				return a.Service.JobSummaries(ctx, operator.JobsRequest{Job: in.Job, After: in.After, Limit: in.Limit, Catalog: a.Jobs})
			})
		})
}
