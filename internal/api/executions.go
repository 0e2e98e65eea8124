package api

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

type (
	// ExecutionPath is embedded in the input of operations on an execution.
	ExecutionPath struct {
		ID int64 `path:"execution" minimum:"1" doc:"Number of an execution"`
	}
	instancesInput struct {
		Job    string `query:"job" maxLength:"200" doc:"Only instances of this job"`
		Before int64  `query:"before" minimum:"0" doc:"Only those with a smaller number: next of the previous page"`
		PageSize
	}
	// PageSize is embedded in the input of lists.
	PageSize struct {
		Limit int `query:"limit" minimum:"0" maximum:"1000" doc:"Size of the page; 0 means 50"`
	}
	showInput struct {
		ExecutionPath
		Partitions bool `query:"partitions" doc:"The partitions of the steps, not only failed ones: at most 1,000 of a step; /parts has pages of them"`
		Audit      bool `query:"audit" doc:"Every change of status, and who requested it"`
		Definition bool `query:"definition" doc:"The job file as it was when the execution started"`
	}
	compareInput struct {
		ExecutionPath
		With string `query:"with" maxLength:"20" doc:"The number of an execution of the same job, or previous (the one before it; the default), or typical (the medians of the last ten that completed)"`
	}
	logInput struct {
		ExecutionPath
		Attempt int    `query:"attempt" minimum:"0" doc:"The log of the execution with this number among those of the instance; 0 means this one"`
		Step    string `query:"step" maxLength:"1000" doc:"Only lines of this step with its parts, or of STEP:PART"`
		Level   string `query:"level" maxLength:"10" doc:"Only lines of this level or a higher one: debug, info, warn or error"`
		Text    string `query:"text" maxLength:"1000" doc:"Only lines with this text in the message, the event or an attribute, in upper or lower case"`
		After   int64  `query:"after" minimum:"-1" default:"-1" doc:"Only lines after this number, from the first on; 0 begins with the first line, and -1 is the last page"`
		Before  int64  `query:"before" minimum:"0" doc:"Only lines before this number, the last of them; it wins over after"`
		Limit   int    `query:"limit" minimum:"0" maximum:"500" doc:"Size of the page; 0 means 500"`
	}
	seriesInput struct {
		ExecutionPath
		Step string `query:"step" maxLength:"1000" doc:"Only this step, over its own time: every round and part of it. A part is STEP:PART"`
	}
	progressInput struct {
		Job string `query:"job" maxLength:"200" doc:"Only executions of this job"`
	}
	progress struct {
		Running []operator.ProgressView `json:"running"`
	}
)

func (p ExecutionPath) id() core.JobExecutionID { return core.JobExecutionID(p.ID) }

func (a *api) addExecutions(h huma.API) {
	huma.Register(h, get(h, "list-executions", "/v1/executions", "Executions, newest first",
		"With param, text, ended_since, ended_until, longer_than, has, actor or worker it is a search, which reads the history for about a tenth of a second: searched_to says how far it came, and next is the key to go on. A page of a search may be empty and have a next one."),
		func(ctx context.Context, in *listInput) (*output[operator.ExecutionPage], error) {
			return answer(a, ctx, func() (*operator.ExecutionPage, error) {
				if in.Actor != "" && access.CallerOf(ctx).Role != settings.Operator {
					return nil, onlyOperators("the filter actor reads the audit, which")
				}
				page, err := a.Service.List(ctx, in.request())
				return &page, err
			})
		})
	huma.Register(h, get(h, "show-execution", "/v1/executions/{execution}", "One execution", "With its steps and decisions."),
		func(ctx context.Context, in *showInput) (*output[operator.ExecutionView], error) {
			return answer(a, ctx, func() (*operator.ExecutionView, error) {
				return a.Service.Show(ctx, operator.ShowRequest{Execution: in.id(), Partitions: in.Partitions, Audit: in.Audit, Definition: in.Definition})
			})
		})
	huma.Register(h, get(h, "explain-execution", "/v1/executions/{execution}/explain", "Explain an execution",
		"The committed work, the reason for its end, the work that a restart repeats, and the possible actions."),
		func(ctx context.Context, in *ExecutionPath) (*output[operator.Explanation], error) {
			return answer(a, ctx, func() (*operator.Explanation, error) {
				return a.Service.Explain(ctx, operator.ExplainRequest{Execution: in.id()})
			})
		})
	huma.Register(h, get(h, "execution-flow", "/v1/executions/{execution}/flow", "The flow of an execution",
		"Its elements with their places in the job file as it was, the visits in the journal, and the effect of a restart on each element."),
		func(ctx context.Context, in *ExecutionPath) (*output[operator.ExecutionFlow], error) {
			return answer(a, ctx, func() (*operator.ExecutionFlow, error) { return a.Service.ExecutionFlow(ctx, in.id()) })
		})
	a.addTimes(h)
	huma.Register(h, get(h, "compare-execution", "/v1/executions/{execution}/compare", "Compare an execution",
		"With another one of its job, or with the medians of the last ten that completed: parameters, definition, counters, durations, rates, decisions, gates and skips."),
		func(ctx context.Context, in *compareInput) (*output[operator.Comparison], error) {
			return answer(a, ctx, func() (*operator.Comparison, error) {
				return a.Service.Compare(ctx, operator.CompareRequest{Execution: in.id(), With: in.With})
			})
		})
	huma.Register(h, get(h, "execution-log", "/v1/executions/{execution}/log", "The log of an execution",
		"A page of its lines, the last one unless after or before selects another. To follow it, ask again with next as after until the execution is over."),
		func(ctx context.Context, in *logInput) (*output[operator.ExecutionLog], error) {
			return answer(a, ctx, func() (*operator.ExecutionLog, error) {
				return a.Service.Log(ctx, operator.LogRequest{
					Execution: in.id(), Attempt: in.Attempt, Step: in.Step, Level: in.Level, Text: in.Text, After: in.After, Before: in.Before, Limit: in.Limit,
				})
			})
		})
	huma.Register(h, get(h, "execution-series", "/v1/executions/{execution}/series", "Its counters over time",
		"Committed rows, and their speed: of the whole execution and of each step, with rounds and parts added up. At most 240 points each; between two of them counters grow evenly. Processes sample their steps at each heartbeat, at most once a second. A step shorter than a heartbeat, or of a killed process, has less detail, and the same last point as its counters."),
		func(ctx context.Context, in *seriesInput) (*output[operator.SeriesView], error) {
			return answer(a, ctx, func() (*operator.SeriesView, error) {
				return a.Service.Series(ctx, operator.SeriesRequest{Execution: in.id(), Step: in.Step})
			})
		})
	huma.Register(h, get(h, "list-instances", "/v1/instances", "Instances, newest first", "Each with its newest execution."),
		func(ctx context.Context, in *instancesInput) (*output[operator.InstancePage], error) {
			return answer(a, ctx, func() (*operator.InstancePage, error) {
				page, err := a.Service.Instances(ctx, operator.InstancesRequest{Job: in.Job, Before: core.JobInstanceID(in.Before), Limit: in.Limit})
				return &page, err
			})
		})
	huma.Register(h, get(h, "progress", "/v1/progress", "Progress of running executions", "Speeds are averages since the steps began."),
		func(ctx context.Context, in *progressInput) (*output[progress], error) {
			return answer(a, ctx, func() (*progress, error) {
				running, err := a.Service.Progress(ctx, operator.ProgressRequest{Job: in.Job})
				return &progress{running}, err
			})
		})
}

type (
	skipsInput struct {
		ExecutionPath
		Step  string `query:"step" maxLength:"1000" doc:"Only items of this step"`
		Phase string `query:"phase" doc:"Only items of this phase: read, process or write"`
		Left  bool   `query:"left" doc:"Only items that were not redriven"`
		Class string `query:"class" maxLength:"1000" doc:"Only items with errors of this class"`
		Text  string `query:"text" maxLength:"1000" doc:"Only items with this text in the error, the item or its text, in upper or lower case. With class or text a page reads 20,000 items: it may be empty and have a next one"`
		After int64  `query:"after" minimum:"0" doc:"Only those with a greater number: next of the previous page"`
		PageSize
	}
	skipGroupsInput struct {
		Since   time.Time `query:"since" doc:"Only items that were skipped at or after this time"`
		Job     string    `query:"job" maxLength:"200" doc:"Only items of this job"`
		Step    string    `query:"step" maxLength:"1000" doc:"Only items of the steps with this name"`
		Phase   string    `query:"phase" doc:"Only items of this phase: read, process or write"`
		Class   string    `query:"class" maxLength:"1000" doc:"Only items with errors of this class"`
		Message string    `query:"message" maxLength:"1000" doc:"Only the group with this message"`
		Text    string    `query:"text" maxLength:"1000" doc:"Only items with this text in the first 300 characters of the error, in upper or lower case"`
		Before  int64     `query:"before" minimum:"0" doc:"Only items with a smaller number: next of the previous page"`
	}
	skipPath struct {
		ID int64 `path:"skip" minimum:"1" doc:"Number of a skipped item"`
	}
)

func (a *api) addSkips(h huma.API) {
	huma.Register(h, get(h, "list-skips", "/v1/executions/{execution}/skips", "Its skipped items", "With the cause of each."),
		func(ctx context.Context, in *skipsInput) (*output[operator.SkipPage], error) {
			return answer(a, ctx, func() (*operator.SkipPage, error) {
				page, err := a.Service.Skips(ctx, operator.SkipsRequest{
					Execution: in.id(), Step: in.Step, Phase: core.Phase(in.Phase), Left: in.Left, Class: in.Class, Text: in.Text, After: in.After, Limit: in.Limit,
				})
				return &page, err
			})
		})
	huma.Register(h, get(h, "skip-groups", "/v1/skips", "Skipped items of all jobs, in groups",
		"By job, step, phase, class and message, the most frequent first. A page reads the newest 10,000 items: searched_to says how far it came, and next is the key to continue."),
		func(ctx context.Context, in *skipGroupsInput) (*output[operator.SkipGroupPage], error) {
			return answer(a, ctx, func() (*operator.SkipGroupPage, error) {
				return a.Service.SkipGroups(ctx, operator.SkipGroupsRequest{
					Since: in.Since, Job: in.Job, Step: in.Step, Phase: core.Phase(in.Phase), Class: in.Class, Message: in.Message, Text: in.Text, Before: in.Before,
				})
			})
		})
	huma.Register(h, get(h, "show-skip", "/v1/skips/{skip}", "One skipped item",
		"If it could not be read, its text is split into fields by the reader of its step, as the stored job definition configures it, and those with the mistake are bad; no_fields says why it is not split."),
		func(ctx context.Context, in *skipPath) (*output[operator.SkipView], error) {
			return answer(a, ctx, func() (*operator.SkipView, error) { return a.splitSkip(ctx, in.ID) })
		})
}

func (a *api) splitSkip(ctx context.Context, id int64) (*operator.SkipView, error) {
	s, err := a.Service.SplitSkip(ctx, id)
	if err != nil || s.Raw == nil {
		return s, err
	}
	if text, err := json.Marshal(*s.Raw); err == nil && !bytes.Equal(a.Mask(text), text) {
		s.HideFields()
	}
	return s, nil
}
