package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type history struct {
	judge   *judge
	view    *viewer
	work    *workload
	records historyRecords
	recent  ports.JobHistory // may be nil
	steps   stepReader
	acts    ports.Acts // may be nil
}

type historyRecords interface {
	Execution(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error)
	ExecutionIDs(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecutionID, error)
	Judged(ctx context.Context, req ports.JudgedRequest) ([]ports.JudgedExecution, error)
	Redrives(ctx context.Context, of core.JobExecutionID, limit int) ([]ports.Redrive, error)
	Jobs(ctx context.Context) ([]core.JobExecution, error)
	Instances(ctx context.Context, filter ports.InstanceFilter) ([]ports.JobInstance, error)
	LastExecutions(ctx context.Context, ids ...core.JobInstanceID) (map[core.JobInstanceID]core.JobExecution, error)
	Steps(ctx context.Context, id core.JobExecutionID) ([]core.StepExecution, error)
	Visits(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) ([]ports.JournalRow, error)
	Audit(ctx context.Context, id core.JobExecutionID) ([]ports.AuditEntry, error)
	Search(ctx context.Context, search ports.ExecutionSearch) (ports.Found, error)
	ParameterNames(ctx context.Context, limit int) ([]string, error)
}

// RequestError is an invalid field of a request.
type RequestError struct {
	Field, Value string
	Reason       string
	// Allowed may be nil.
	Allowed []string
}

func (e *RequestError) Error() string {
	text := e.Field + ": " + e.Reason
	if e.Value != "" {
		text = e.Field + " " + e.Value + ": " + e.Reason
	}
	if len(e.Allowed) > 0 {
		text += " (allowed: " + strings.Join(e.Allowed, ", ") + ")"
	}
	return text
}

const defaultLimit = 50

// ListRequest selects executions; zero fields select all.
type ListRequest struct {
	Job      string             `json:"job,omitempty"`
	Instance core.JobInstanceID `json:"instance,omitempty"`
	Statuses []core.Status      `json:"statuses,omitempty"`
	// Running excludes Statuses.
	Running bool   `json:"running,omitempty"`
	Exit    string `json:"exit,omitempty"`
	// [Since, Until) bounds the creation.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Search has conditions that make the list a search.
	Search
	// Before selects smaller IDs: the key of the next page. After selects larger ones, and lists them
	// oldest first.
	Before core.JobExecutionID `json:"before,omitempty"`
	After  core.JobExecutionID `json:"after,omitempty"`
	// Limit: 0 means 50.
	Limit int `json:"limit,omitempty"`
	// Count counts the executions of all pages, up to 10,000.
	Count bool `json:"count,omitempty"`
	// FailedSteps adds the failed step of each failed execution of the page.
	FailedSteps bool `json:"failed_steps,omitempty"`
}

// SelectsAll reports whether it has no condition.
func (r *ListRequest) SelectsAll() bool {
	return r.Search.IsEmpty() && r.Job == "" && r.Instance == 0 && len(r.Statuses) == 0 && !r.Running && r.Exit == "" && r.Since.IsZero() && r.Until.IsZero()
}

// ExecutionPage is a page of executions, newest first.
type ExecutionPage struct {
	Executions []Execution `json:"executions"`
	// Next: 0 means the last page.
	Next core.JobExecutionID `json:"next,omitempty"`
	// SearchedTo is set if a search has a next page. Its page may have few
	// executions, or none.
	SearchedTo *SearchedTo `json:"searched_to,omitempty"`
	// Count is set if requested.
	Count *ExecutionCount `json:"count,omitempty"`
	// Notes name possible mistakes in the request.
	Notes []string `json:"notes,omitempty"`
}

// List lists executions, newest first. It returns a *RequestError for an
// invalid request.
func (s *history) List(ctx context.Context, req ListRequest) (ExecutionPage, error) {
	filter, err := req.filter()
	if err != nil {
		return ExecutionPage{}, err
	}
	search, err := req.Search.conditions(s.judge.now())
	if err != nil {
		return ExecutionPage{}, err
	}
	search.Filter, search.After = filter, req.After
	page, err := s.list(ctx, &req, search)
	if err == nil && req.FailedSteps {
		err = s.addFailedSteps(ctx, page.Executions)
	}
	if err == nil && req.Count {
		page.Count, err = s.count(ctx, search)
	}
	if err == nil && len(page.Executions) == 0 {
		page.Notes, err = s.notes(ctx, search)
	}
	if err != nil {
		return page, fmt.Errorf("list executions: %w", err)
	}
	return page, nil
}

func (s *history) list(ctx context.Context, req *ListRequest, search ports.ExecutionSearch) (ExecutionPage, error) {
	if !req.Search.IsEmpty() || req.After != 0 {
		return s.search(ctx, search)
	}
	ids, err := s.records.ExecutionIDs(ctx, search.Filter)
	if err != nil {
		return ExecutionPage{}, err
	}
	ids, more := cutPage(ids, search.Filter.Limit)
	var page ExecutionPage
	if page.Executions, err = s.listed(ctx, ids, search.Filter); err == nil && more {
		page.Next = ids[len(ids)-1]
	}
	return page, err
}

// addFailedSteps reads the steps of the failed executions of a page with one statement.
func (s *history) addFailedSteps(ctx context.Context, page []Execution) error {
	var failed []core.JobExecutionID
	for i := range page {
		if st := page[i].Status; st == core.StatusFailed || st == core.StatusUnknown {
			failed = append(failed, page[i].ID)
		}
	}
	if s.recent == nil || len(failed) == 0 {
		return nil
	}
	names, err := s.recent.FailedSteps(ctx, failed...)
	if err != nil {
		return err
	}
	for i := range page {
		page[i].FailedStep = names[page[i].ID]
	}
	return nil
}

func (s *history) listed(ctx context.Context, ids []core.JobExecutionID, filter ports.ExecutionFilter) ([]Execution, error) {
	judged, err := s.records.Judged(ctx, ports.JudgedRequest{IDs: ids, Brief: true, Dead: s.judge.dead})
	if err != nil {
		return nil, err
	}
	judged = slices.DeleteFunc(judged, func(j ports.JudgedExecution) bool { // they may have changed since their IDs were read
		status, exit := j.Execution.Status, j.Execution.ExitCode
		return len(filter.Statuses) > 0 && !slices.Contains(filter.Statuses, status) || filter.ExitCode != "" && exit != filter.ExitCode
	})
	return s.view.views(ctx, judged)
}

func (r ListRequest) filter() (filter ports.ExecutionFilter, err error) {
	filter = ports.ExecutionFilter{
		JobName: r.Job, Instance: r.Instance, Statuses: r.Statuses, ExitCode: r.Exit,
		CreatedFrom: r.Since, CreatedTo: r.Until, Before: r.Before,
	}
	if filter.Limit, err = askLimit(r.Limit); err != nil {
		return filter, err
	}
	for _, status := range r.Statuses {
		if !slices.Contains(core.Statuses(), status) {
			return filter, &RequestError{Field: "statuses", Value: string(status), Reason: "no such status" + meant(string(status), StatusNames()), Allowed: StatusNames()}
		}
	}
	if r.Running {
		if len(r.Statuses) > 0 {
			return filter, &RequestError{Field: "running", Value: "true", Reason: "statuses are set as well: set only one of them"}
		}
		filter.Statuses = ports.ActiveStatuses()
	}
	if r.Before != 0 && r.After != 0 {
		return filter, &RequestError{Field: "after", Value: fmt.Sprint(r.After), Reason: "before is set as well: set only one of them"}
	}
	return filter, nil
}

// One record more shows whether there is a next page.
func askLimit(limit int) (int, error) {
	switch {
	case limit < 0:
		return 0, &RequestError{Field: "limit", Value: fmt.Sprint(limit), Reason: "it must be at least 1"}
	case limit == 0:
		limit = defaultLimit
	}
	return limit + 1, nil
}

func cutPage[T any](found []T, asked int) (page []T, more bool) {
	if len(found) < asked {
		return found, false
	}
	return found[:asked-1], true
}

// StatusNames returns the names of all statuses.
func StatusNames() []string {
	var names []string
	for _, s := range core.Statuses() {
		names = append(names, string(s))
	}
	return names
}

// InstancesRequest selects job instances; zero fields select all.
type InstancesRequest struct {
	Job    string             `json:"job,omitempty"`
	Before core.JobInstanceID `json:"before,omitempty"`
	// Limit: 0 means 50.
	Limit int `json:"limit,omitempty"`
}

// InstancePage is a page of job instances, newest first.
type InstancePage struct {
	Instances []InstanceView     `json:"instances"`
	Next      core.JobInstanceID `json:"next,omitempty"`
}

// Instances lists job instances with their newest executions, newest first.
func (s *history) Instances(ctx context.Context, req InstancesRequest) (InstancePage, error) {
	limit, err := askLimit(req.Limit)
	if err != nil {
		return InstancePage{}, err
	}
	found, err := s.records.Instances(ctx, ports.InstanceFilter{JobName: req.Job, Before: req.Before, Limit: limit})
	if err != nil {
		return InstancePage{}, fmt.Errorf("list instances: %w", err)
	}
	found, more := cutPage(found, limit)
	ids := make([]core.JobInstanceID, len(found))
	for i, instance := range found {
		ids[i] = instance.ID
	}
	last, err := s.records.LastExecutions(ctx, ids...)
	if err != nil {
		return InstancePage{}, err
	}
	page := InstancePage{Instances: []InstanceView{}}
	for _, instance := range found {
		page.Instances = append(page.Instances, instanceView(instance, last[instance.ID]))
	}
	if more {
		page.Next = found[len(found)-1].ID
	}
	return page, nil
}

func instanceView(instance ports.JobInstance, last core.JobExecution) InstanceView {
	return InstanceView{
		ID: instance.ID, JobName: instance.JobName, Params: Parameters{last.Params.Identifying()},
		Attempts: last.Attempt, Execution: last.ID, Status: last.Status, ExitCode: last.ExitCode,
	}
}

// Jobs lists the newest execution of each job, sorted by job name.
func (s *history) Jobs(ctx context.Context) ([]Execution, error) {
	found, err := s.records.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	list, err := s.view.executions(ctx, found)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return list, nil
}
