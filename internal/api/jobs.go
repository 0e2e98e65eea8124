package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
)

type (
	// Embedded input types are exported for reflection.
	JobPath struct {
		Job string `path:"job" doc:"Name of a job" maxLength:"100"`
	}
	// RunBody is the client's form of operator.RunRequest.
	RunBody struct {
		Params        map[string]json.RawMessage `json:"params,omitempty" doc:"Texts, numbers and booleans by name, typed and checked as the job file declares them. A relative path starts at the folder of the job file."`
		Again         bool                       `json:"again,omitempty" doc:"Create a new instance if the one with these parameters is complete"`
		Next          bool                       `json:"next,omitempty" doc:"Create the next instance with the job's incrementer"`
		FromStart     bool                       `json:"from_start,omitempty" doc:"Run every step of a resumed instance from its start"`
		AcceptChanges bool                       `json:"accept_changes,omitempty" doc:"Resume an instance although its job file has changed in parts with committed work"`
	}
	runInput struct {
		JobPath
		KeyHeader
		Body *struct {
			RunBody
			ReasonBody
		}
	}
	planInput struct {
		JobPath
		Body *struct {
			RunBody
			Sample int `json:"sample,omitempty" minimum:"0" maximum:"1000" doc:"How many items of each step are read; 0 means 20"`
		}
	}
	trendInput struct {
		JobPath
		Limit int `query:"limit" minimum:"0" maximum:"100" doc:"Number of executions; 0 means 50"`
	}
	calendarInput struct {
		JobPath
		Param string `query:"param" maxLength:"200" doc:"An identifying parameter of type date; by default the first one"`
		Month string `query:"month" maxLength:"7" doc:"YYYY-MM; by default the month of the newest execution"`
	}
	daysInput struct {
		JobPath
		Param string `query:"param" maxLength:"200" doc:"An identifying parameter of type date or int; by default the first one"`
		From  string `query:"from" maxLength:"50" doc:"First value, such as 2026-11-01; without a range, the month of the newest execution"`
		To    string `query:"to" maxLength:"50" doc:"Last value; at most 1,000 values are between them"`
	}
	jobList struct {
		Jobs []catalog.JobDescription `json:"jobs"`
	}
	history struct {
		Jobs []operator.Execution `json:"jobs"`
	}
)

func (a *api) addJobs(h huma.API) {
	calendar := func(ctx context.Context, req operator.CalendarRequest) (*output[operator.JobCalendar], error) {
		return answer(a, ctx, func() (*operator.JobCalendar, error) {
			file, err := a.Jobs.File(req.Job)
			if err == nil { // else the history has its parameters
				req.File = file
			}
			return a.Service.Calendar(ctx, req)
		})
	}
	huma.Register(h, get(h, "list-jobs", "/v1/jobs", "The jobs that can be run", "Each with its parameters, steps and incrementer."),
		func(context.Context, *struct{}) (*output[jobList], error) {
			return &output[jobList]{jobList{a.Jobs.Jobs()}}, nil
		})
	huma.Register(h, get(h, "show-job", "/v1/jobs/{job}", "One job", "Its description and its parameters."),
		func(ctx context.Context, in *JobPath) (*output[catalog.JobDescription], error) {
			return answer(a, ctx, func() (*catalog.JobDescription, error) { return a.Jobs.Job(in.Job) })
		})
	huma.Register(h, get(h, "job-flow", "/v1/jobs/{job}/flow", "The flow of a job", "Its elements in the order of the file, with their transitions and places."),
		func(ctx context.Context, in *JobPath) (*output[operator.JobFlow], error) {
			return answer(a, ctx, func() (*operator.JobFlow, error) {
				file, err := a.Jobs.File(in.Job)
				if err != nil {
					return nil, err
				}
				return a.Service.JobFlow(ctx, in.Job, file)
			})
		})
	huma.Register(h, get(h, "job-trend", "/v1/jobs/{job}/trend", "The last executions of a job in numbers",
		"Duration, rows and skipped items of each, newest first, and the median and 95th percentile of the completed ones. Redrives do not count."),
		func(ctx context.Context, in *trendInput) (*output[operator.JobTrend], error) {
			return answer(a, ctx, func() (*operator.JobTrend, error) {
				return a.Service.Trend(ctx, operator.TrendRequest{Job: in.Job, Limit: in.Limit})
			})
		})
	huma.Register(h, get(h, "job-calendar", "/v1/jobs/{job}/calendar", "The instances of a job by a date",
		"For each day of a month the state of the instance with this date: by an identifying parameter of type date."),
		func(ctx context.Context, in *calendarInput) (*output[operator.JobCalendar], error) {
			return calendar(ctx, operator.CalendarRequest{Job: in.Job, Param: in.Param, Month: in.Month})
		})
	huma.Register(h, get(h, "job-days", "/v1/jobs/{job}/days", "The instances of a job by a range of values",
		"For each date or number the state of the instance with it, and the values that never ran."),
		func(ctx context.Context, in *daysInput) (*output[operator.JobCalendar], error) {
			return calendar(ctx, operator.CalendarRequest{Job: in.Job, Param: in.Param, From: in.From, To: in.To})
		})
	huma.Register(h, post(h, "run-job", "/v1/jobs/{job}/run", "Run a job",
		"Starts an execution and returns its number at once; the server runs it. The parameters identify the instance: a failed or stopped one resumes where it was, a complete one is refused."),
		func(ctx context.Context, in *runInput) (*keyed[acted], error) {
			return once(a, ctx, in.Key, request{"run-job", in.Job, in.Body}, func(ctx context.Context, key ports.RequestKey) (*acted, error) {
				return a.run(ctx, in, key)
			})
		})
	addBackfill(a, h)
	huma.Register(h, post(h, "plan-job", "/v1/jobs/{job}/plan", "Preview a run",
		"A dry run: reads the first items of each chunk step with the real readers and processors, and writes nothing."),
		func(ctx context.Context, in *planInput) (*output[operator.DryRun], error) {
			return answer(a, ctx, func() (*operator.DryRun, error) { return a.plan(ctx, in) })
		})
	huma.Register(h, get(h, "job-history", "/v1/history", "The jobs of the history", "The newest execution of each job, whether or not this server can run it."),
		func(ctx context.Context, _ *struct{}) (*output[history], error) {
			return answer(a, ctx, func() (*history, error) {
				jobs, err := a.Service.Jobs(ctx)
				return &history{jobs}, err
			})
		})
}

func (a *api) run(ctx context.Context, in *runInput, key ports.RequestKey) (*acted, error) {
	var body RunBody
	if in.Body != nil {
		var err error
		if ctx, err = in.Body.because(ctx); err != nil {
			return nil, err
		}
		body = in.Body.RunBody
	}
	if err := body.check(); err != nil {
		return nil, err
	}
	file, err := a.Jobs.File(in.Job)
	if err != nil {
		return nil, err
	}
	params, err := texts(body.Params)
	if err != nil {
		return nil, err
	}
	return a.start(func(hooks operator.Hooks) (*operator.Running, error) {
		return a.Service.Start(ctx, operator.RunRequest{
			Checked: file, Params: params, Again: body.Again, Next: body.Next, FromStart: body.FromStart, AcceptChanges: body.AcceptChanges,
			Key: key, Hooks: hooks,
		})
	})
}

func (b *RunBody) check() error {
	if b.Again && b.Next {
		return &operator.RequestError{Field: "body.next", Value: "true", Reason: "again is set, too: set one of them"}
	}
	return nil
}

func (a *api) plan(ctx context.Context, in *planInput) (*operator.DryRun, error) {
	file, err := a.Jobs.File(in.Job)
	if err != nil {
		return nil, err
	}
	req := operator.PlanRequest{Checked: file}
	if b := in.Body; b != nil {
		if err := b.check(); err != nil {
			return nil, err
		}
		if req.Params, err = texts(b.Params); err != nil {
			return nil, err
		}
		req.Again, req.Next, req.FromStart, req.AcceptChanges, req.Sample = b.Again, b.Next, b.FromStart, b.AcceptChanges, b.Sample
	}
	return a.Planner.Plan(ctx, req)
}

func (a *api) start(begin func(operator.Hooks) (*operator.Running, error)) (*acted, error) {
	got := &acted{Applied: true}
	running, err := begin(operator.Hooks{OnNotice: func(n operator.Notice) { got.Notices = append(got.Notices, n) }})
	if err != nil {
		return nil, err
	}
	a.started(running)
	e := running.Execution()
	got.ID, got.Status = e.ID, e.Status
	return got, nil
}

func texts(params map[string]json.RawMessage) (map[string]string, error) {
	given := map[string]string{}
	var wrong []*huma.ErrorDetail
	for name, value := range params {
		text, isString := "", len(value) > 0 && value[0] == '"'
		switch {
		case isString && json.Unmarshal(value, &text) == nil:
			given[name] = text
		case !isString && len(value) > 0 && !strings.ContainsRune("{[n", rune(value[0])):
			given[name] = string(value) // a number keeps its digits
		default:
			wrong = append(wrong, &huma.ErrorDetail{Message: "expected a text, a number, true or false", Location: "body.params." + name})
		}
	}
	if len(wrong) > 0 {
		p := newProblem(http.StatusUnprocessableEntity, "parameters: expected a text, a number, true or false")
		p.Reason, p.Errors = refusal.Parameters, wrong
		return nil, p
	}
	return given, nil
}
