package api

import (
	"time"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// listInput has the filters of executions.
type listInput struct {
	Job      string    `query:"job" maxLength:"200" doc:"Only executions of this job"`
	Instance int64     `query:"instance" minimum:"0" doc:"Only executions of this instance"`
	Statuses []string  `query:"statuses" maxItems:"20" doc:"Only executions in these statuses, separated by commas"`
	Running  bool      `query:"running" doc:"Only executions that are not over"`
	Exit     string    `query:"exit" maxLength:"2500" doc:"Only executions with this exit code"`
	Since    time.Time `query:"since" doc:"Only executions created at or after this time"`
	Until    time.Time `query:"until" doc:"Only executions created before this time"`
	Before   int64     `query:"before" minimum:"0" doc:"Only those with a smaller number: next of the previous page"`
	After    int64     `query:"after" minimum:"0" doc:"Only those with a greater number, oldest first: next of the previous page"`
	FindFilters
	Count       bool `query:"count" doc:"Count the executions of all pages, up to 10000; more: there are more, or may be"`
	FailedSteps bool `query:"failed_steps" doc:"The name of the step that failed, of each failed execution (failed_step)"`
	PageSize
}

// FindFilters is embedded in the input of the list: filters that make it a search.
type FindFilters struct {
	Params     []string  `query:"param,explode" maxItems:"20" doc:"Only executions with this parameter, as NAME:VALUE; several must all hold. A time without an offset is UTC"`
	Text       string    `query:"text" maxLength:"200" doc:"Only executions with this text in an error, of a step too, or in an exit code of their own; case does not matter"`
	EndedSince time.Time `query:"ended_since" doc:"Only executions that ended at or after this time"`
	EndedUntil time.Time `query:"ended_until" doc:"Only executions that ended before this time"`
	LongerThan string    `query:"longer_than" maxLength:"30" doc:"Only executions that took longer than this duration, or run for longer: 90s, 1h30m"`
	Has        []string  `query:"has" maxItems:"10" doc:"Only executions with all of these marks, separated by commas: skips_left (skipped items that were not redriven), redrives, stop_requested, lost (the owner was lost, or its lease has expired)"`
	Actor      string    `query:"actor" maxLength:"200" doc:"Only executions that this user or client has run, restarted, redriven, stopped, abandoned or recovered, as far as the audit is kept"`
	Worker     string    `query:"worker" maxLength:"200" doc:"Only executions with a step or part that this worker had: its name, HOST or HOST:PID"`
}

func (in *listInput) request() operator.ListRequest {
	req := operator.ListRequest{
		Job: in.Job, Instance: core.JobInstanceID(in.Instance), Running: in.Running, Exit: in.Exit, Since: in.Since, Until: in.Until,
		Before: core.JobExecutionID(in.Before), After: core.JobExecutionID(in.After), Limit: in.Limit, Count: in.Count, FailedSteps: in.FailedSteps,
		Search: operator.Search{
			Params: in.Params, Text: in.Text, EndedSince: in.EndedSince, EndedUntil: in.EndedUntil, LongerThan: in.LongerThan, Has: in.Has,
			Actor: in.Actor, Worker: in.Worker,
		},
	}
	for _, s := range in.Statuses {
		req.Statuses = append(req.Statuses, core.Status(s))
	}
	return req
}
