package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// bulks acts on many executions (rule OP16).
type bulks struct {
	history   *history
	judge     *judge
	view      *viewer
	restarts  *restarts
	redrives  *redrives
	acts      *acts
	changes   *comparison
	admission *admission
	records   journal.Repository
	actor     actor
}

// BulkRequest requests one act on many executions.
type BulkRequest struct {
	// Act is one of BulkActs.
	Act string
	// Executions or Filter select them. A page, a count and failed steps have no meaning in Filter.
	Executions []core.JobExecutionID
	Filter     *ListRequest
	// Expect is the number that the caller saw; 0 means any.
	Expect int
	// Offers refuses a job that must not be started; may be nil.
	Offers func(job string) error
}

type (
	// BulkPlan is a page of the predicted effects of a bulk, oldest execution first.
	BulkPlan struct {
		Act      string     `json:"act"`
		Selected int        `json:"selected"`
		Items    []BulkItem `json:"items"`
		// Next is the key of the next page, or 0.
		Next core.JobExecutionID `json:"next,omitempty"`
	}
	// BulkItem is the predicted effect on one execution.
	BulkItem struct {
		Execution core.JobExecutionID `json:"execution"`
		JobName   string              `json:"job"`
		Status    core.Status         `json:"status"`
		Epoch     int64               `json:"epoch"`
		// Steps are the first ones that certainly run, at most 10.
		Steps []BulkStep `json:"steps,omitempty"`
		// Refused is nil if the act would be done.
		Refused *Refusal `json:"refused,omitempty"`
	}
	// BulkStep is a step that a restart runs.
	BulkStep struct {
		Step   string  `json:"step"`
		Action PlanAct `json:"action"`
	}
)

const (
	maxBulk      = 10_000
	bulkPage     = 1000
	bulkSearch   = 20 * time.Second
	bulkPlanned  = 100
	plannedSteps = 10
	bulkPlanTime = 2 * time.Second
	bulkAttempts = 20
	maxTitle     = 1000
)

// Bulk returns the tasks of a bulk, one for each execution, bound to its present state.
func (s *bulks) Bulk(ctx context.Context, req BulkRequest) (task.Submission, error) {
	selected, err := s.selected(ctx, req)
	if err != nil {
		return task.Submission{}, err
	}
	title, reason := titleOf(ctx, fmt.Sprintf("%s of %s", req.Act, humanize.Plural(len(selected), "execution")))
	sub := task.Submission{Title: title, Type: task.TypeJob, Budget: bulkBudget()}
	for _, e := range selected {
		payload, err := json.Marshal(JobTask{Act: req.Act, Execution: e.ID, Epoch: e.Epoch, Actor: s.actor.of(ctx), Reason: reason})
		if err != nil {
			return sub, err
		}
		sub.Tasks = append(sub.Tasks, task.Spec{Title: fmt.Sprintf("%s execution %d of %s", req.Act, e.ID, e.JobName), Payload: payload})
	}
	return sub, nil
}

// PlanBulk predicts the effects on the selected executions after one. A page ends after 100, or two
// seconds.
func (s *bulks) PlanBulk(ctx context.Context, req BulkRequest, after core.JobExecutionID) (*BulkPlan, error) {
	selected, err := s.selected(ctx, req)
	if err != nil {
		return nil, err
	}
	plan := &BulkPlan{Act: req.Act, Selected: len(selected), Items: []BulkItem{}}
	begin := time.Now()
	ctx = withParsed(ctx)
	for _, e := range selected {
		if e.ID <= after {
			continue
		}
		if n := len(plan.Items); n == bulkPlanned || n > 0 && time.Since(begin) > bulkPlanTime {
			plan.Next = plan.Items[n-1].Execution
			break
		}
		item := BulkItem{Execution: e.ID, JobName: e.JobName, Status: e.Status, Epoch: e.Epoch}
		if item.Steps, err = s.would(ctx, req.Act, e); err != nil {
			if item.Refused, err = refusedIn(err); err != nil {
				return nil, err
			}
		}
		plan.Items = append(plan.Items, item)
	}
	return plan, nil
}

func refusedIn(err error) (*Refusal, error) {
	if r, is := errors.AsType[*Refusal](err); is {
		return r, nil
	}
	if reason := reasonOf(err); reason != "" {
		return &Refusal{Reason: reason, Err: err}, nil
	}
	return nil, err
}

// would asks the code of the act, which writes nothing.
func (s *bulks) would(ctx context.Context, act string, of Execution) ([]BulkStep, error) {
	switch act {
	case ports.VerbRestart:
		return s.wouldRestart(ctx, of)
	case ports.VerbRedrive:
		l, err := s.redrives.redriveOf(ctx, RedriveRequest{Execution: of.ID})
		if err != nil {
			return nil, err
		}
		return []BulkStep{{redrivenStep(l.params), PlanRun}}, nil
	}
	e, err := s.judge.found(ctx, of.ID)
	if err != nil {
		return nil, err
	}
	if act == ports.VerbStop {
		if e.Status.IsOver() {
			return nil, s.acts.nothingToStop(ctx, e)
		}
		return nil, nil
	}
	newest, err := s.judge.newestAttempt(ctx, e)
	switch {
	case err != nil:
		return nil, err
	case newest.Execution.ID != e.ID:
		return nil, s.judge.notNewest(ctx, &ports.NotNewestError{JobName: e.JobName, Execution: e.ID, Newest: newest.Execution.ID, Status: newest.Execution.Status})
	case e.Status != core.StatusAbandoned && !slices.Contains(ports.MoveTo(core.StatusAbandoned).From, e.Status):
		return nil, s.acts.notAbandoned(ctx, &core.TransitionError{Machine: "execution", ID: int64(e.ID), To: core.StatusAbandoned, Current: e.Status}, e)
	}
	return nil, nil
}

func (s *bulks) wouldRestart(ctx context.Context, of Execution) ([]BulkStep, error) {
	l, err := s.restarts.restartOf(ctx, RestartRequest{Execution: of.ID})
	if err == nil {
		err = s.admission.admits(ctx, l)
	}
	if err == nil {
		err = s.admission.checkFormer(ctx, l)
	}
	if err == nil && l.file != nil {
		_, err = s.changes.changes(ctx, l.named, l)
	}
	if err != nil {
		return nil, err
	}
	if excluded, err := s.admission.excluded(ctx, l.job, l.params); err != nil || excluded != nil {
		return nil, cmpError(err, excluded)
	}
	plan, err := restartPlan(ctx, s.records, l.named, l.job)
	if err != nil {
		return nil, err
	}
	var steps []BulkStep
	for _, e := range plan.Entries {
		if e.Step != "" && e.Certainty == Certain && e.Action != PlanPass && e.Action != PlanSkip && len(steps) < plannedSteps {
			steps = append(steps, BulkStep{e.Step, e.Action})
		}
	}
	return steps, nil
}

func cmpError(err error, refused *Refusal) error {
	if err != nil {
		return err
	}
	return refused
}

// selected are the executions of a request, oldest first.
func (s *bulks) selected(ctx context.Context, req BulkRequest) (list []Execution, err error) {
	switch {
	case !slices.Contains(BulkActs(), req.Act):
		return nil, &RequestError{Field: "act", Value: req.Act, Reason: "no such act", Allowed: BulkActs()}
	case (len(req.Executions) == 0) == (req.Filter == nil):
		return nil, &RequestError{Field: "filter", Reason: "set executions or filter, and not both"}
	case req.Filter != nil:
		list, err = s.filtered(ctx, *req.Filter)
	default:
		list, err = s.named(ctx, req.Executions)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b Execution) int { return int(a.ID - b.ID) })
	if n := len(list); req.Expect != 0 && n != req.Expect {
		return nil, &Refusal{Reason: refusal.Moved, Err: fmt.Errorf("%s are selected now, and %d were expected: look at them again", humanize.Plural(n, "execution"), req.Expect)}
	}
	if len(list) == 0 {
		return nil, &Refusal{Reason: refusal.NotFound, Err: errors.New("no execution matches the filter"), Actions: []Action{{Kind: refusal.ActHistory}}}
	}
	if req.Offers != nil && (req.Act == ports.VerbRestart || req.Act == ports.VerbRedrive) {
		seen := map[string]bool{}
		for _, e := range list {
			if seen[e.JobName] {
				continue
			}
			seen[e.JobName] = true
			if err := req.Offers(e.JobName); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

func (s *bulks) filtered(ctx context.Context, f ListRequest) (list []Execution, err error) {
	if f.Before != 0 || f.After != 0 || f.Limit != 0 || f.Count || f.FailedSteps {
		return nil, &RequestError{Field: "filter", Reason: "before, after, limit, count and failed_steps are for lists"}
	}
	if f.SelectsAll() {
		return nil, &RequestError{Field: "filter", Reason: "at least one condition is needed"}
	}
	f.Limit = bulkPage
	begin := time.Now()
	for {
		page, err := s.history.List(ctx, f)
		if err != nil {
			return nil, err
		}
		list = append(list, page.Executions...)
		switch {
		case len(list) > maxBulk:
			return nil, &RequestError{Field: "filter", Reason: fmt.Sprintf("it selects more than %d executions", maxBulk)}
		case page.Next == 0:
			return list, nil
		case time.Since(begin) > bulkSearch:
			return nil, &RequestError{Field: "filter", Reason: fmt.Sprintf("the search came to execution %d in %v: add since, a job or statuses", page.Next, bulkSearch)}
		}
		f.Before = page.Next
	}
}

func (s *bulks) named(ctx context.Context, ids []core.JobExecutionID) (list []Execution, err error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	if len(ids) > maxBulk {
		return nil, &RequestError{Field: "executions", Reason: fmt.Sprintf("at most %d", maxBulk)}
	}
	found := make(map[core.JobExecutionID]bool, len(ids))
	for batch := range slices.Chunk(ids, bulkPage) {
		judged, err := s.history.records.Judged(ctx, ports.JudgedRequest{IDs: batch, Brief: true, Dead: s.judge.dead})
		if err != nil {
			return nil, err
		}
		for i := range judged {
			found[judged[i].Execution.ID] = true
			list = append(list, s.view.view(&judged[i].Execution, &judged[i].Newest))
		}
	}
	for _, id := range ids {
		if !found[id] {
			return nil, &Refusal{Reason: refusal.NotFound, Execution: id, Err: fmt.Errorf("execution %d: %w", id, core.ErrNotFound), Actions: []Action{{Kind: refusal.ActHistory}}}
		}
	}
	return list, nil
}

// titleOf is the title of a group of tasks, and their reason.
func titleOf(ctx context.Context, title string) (_, reason string) {
	reason = strings.TrimSuffix(title+": "+ports.ReasonOf(ctx), ": ")
	if len(reason) <= maxTitle {
		title = reason
	}
	return title, reason
}

func bulkBudget() task.Budget {
	return task.Budget{MaxAttempts: bulkAttempts, MaxNoProgress: maxBulk * bulkAttempts}
}
