package operator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type parted struct {
	view    *viewer
	records interface {
		Judged(ctx context.Context, req ports.JudgedRequest) ([]ports.JudgedExecution, error)
		ports.Parts
		WorkerNames(ctx context.Context) (map[core.Owner]string, error)
	}
}

// PartsRequest selects parts of one step.
type PartsRequest struct {
	Execution core.JobExecutionID `json:"execution"`
	// Step is the name of the step, or the number of its step execution; "" means the last one with
	// parts. Of the rounds of a loop a name selects the newest.
	Step string `json:"step,omitempty"`
	// Order: "" means by number.
	Order ports.PartOrder `json:"order,omitempty"`
	// Left selects parts that are not complete.
	Left bool `json:"left,omitempty"`
	// After is Next of the previous page.
	After string `json:"after,omitempty"`
	// Limit: 0 means 50.
	Limit int `json:"limit,omitempty"`
}

// PartPage is a page of the parts of a step.
type PartPage struct {
	Execution core.JobExecutionID `json:"execution"`
	// PartedStep is zero if no step of the execution has parts.
	PartedStep
	// Total and Statuses are of all parts.
	Total    int                 `json:"total"`
	Statuses map[core.Status]int `json:"statuses"`
	Parts    []PartView          `json:"parts"`
	// Next is empty on the last page.
	Next string `json:"next,omitempty"`
	// Others are the other steps of the execution that have parts, and other rounds of this one.
	Others []PartedStep `json:"others,omitempty"`
}

// PartedStep is a step execution that has parts.
type PartedStep struct {
	Step   string               `json:"step,omitempty"`
	ID     core.StepExecutionID `json:"step_execution,omitempty"`
	Status core.Status          `json:"status,omitempty"`
	// Started tells the rounds of a loop apart.
	Started time.Time `json:"started,omitzero"`
	// Branches: its parts are branches of a split.
	Branches bool `json:"branches,omitempty"`
}

// PartView is a part of a step.
type PartView struct {
	StepView
	// WorkerName is the worker that has it, or had it last, if the history still knows the name.
	WorkerName string `json:"worker_name,omitempty"`
	// Assigned is how often a worker took it.
	Assigned int `json:"assigned,omitempty"`
}

// Parts lists the parts of a step. It returns core.ErrNotFound, or a *RequestError for an invalid
// request.
func (s *parted) Parts(ctx context.Context, req PartsRequest) (*PartPage, error) {
	filter, err := req.filter()
	if err != nil {
		return nil, err
	}
	if _, err := seen(ctx, s.records, req.Execution); err != nil {
		return nil, err
	}
	steps, err := s.records.PartedSteps(ctx, req.Execution)
	if err != nil {
		return nil, err
	}
	page := &PartPage{Execution: req.Execution, Statuses: map[core.Status]int{}, Parts: []PartView{}}
	list := partedSteps(steps)
	at, err := req.selects(list)
	if err != nil || at < 0 {
		return page, err
	}
	page.PartedStep, page.Others = list[at], slices.Delete(slices.Clone(list), at, at+1)
	if page.Statuses, err = s.records.PartCounts(ctx, page.ID); err != nil {
		return nil, err
	}
	for _, n := range page.Statuses {
		page.Total += n
	}
	filter.Manager = page.ID
	return page, s.fill(ctx, page, filter)
}

func (s *parted) fill(ctx context.Context, page *PartPage, filter ports.PartFilter) error {
	found, err := s.records.PartPage(ctx, filter)
	if err != nil {
		return err
	}
	names, err := s.records.WorkerNames(ctx)
	if err != nil {
		return err
	}
	found, more := cutPage(found, filter.Limit)
	for i := range found {
		part := &found[i].Step
		page.Branches = page.Branches || part.IsBranch()
		page.Parts = append(page.Parts, PartView{StepView: s.view.stepView(part), WorkerName: names[part.Owner], Assigned: part.Assigned})
	}
	if more {
		page.Next = placeText(found[len(found)-1].Place, filter.Order)
	}
	return nil
}

func (r PartsRequest) filter() (filter ports.PartFilter, err error) {
	filter = ports.PartFilter{Order: r.Order, Left: r.Left}
	orders := []string{string(ports.PartsByNumber), string(ports.PartsByDuration), string(ports.PartsByStatus)}
	if filter.Order == "" {
		filter.Order = ports.PartsByNumber
	}
	if !slices.Contains(orders, string(filter.Order)) {
		return filter, &RequestError{Field: "order", Value: string(r.Order), Reason: "no such order", Allowed: orders}
	}
	if filter.After, err = parsePlace(r.After, filter.Order); err != nil {
		return filter, err
	}
	filter.Limit, err = askLimit(r.Limit)
	return filter, err
}

// selects returns the index of the requested step, or -1 if none has parts.
func (r PartsRequest) selects(list []PartedStep) (int, error) {
	if r.Step == "" {
		return len(list) - 1, nil
	}
	var names []string
	for i, s := range slices.Backward(list) {
		if s.Step == r.Step || strconv.FormatInt(int64(s.ID), 10) == r.Step {
			return i, nil
		}
		if !slices.Contains(names, s.Step) {
			names = append(names, s.Step)
		}
	}
	return 0, &RequestError{Field: "step", Value: r.Step, Reason: fmt.Sprintf("no step of execution %d with this name or number has parts", r.Execution), Allowed: names}
}

func partedSteps(steps []ports.StepSpan) []PartedStep {
	list := make([]PartedStep, len(steps))
	for i, s := range steps {
		list[i] = PartedStep{Step: s.Name, ID: s.ID, Status: s.Status, Started: utc(s.StartedAt)}
	}
	return list
}

// placeText is the place of the next page: the part's number, after its rank if the order has one.
func placeText(p ports.PartPlace, order ports.PartOrder) string {
	id := strconv.FormatInt(int64(p.Part), 10)
	if order == ports.PartsByNumber {
		return id
	}
	return strconv.FormatInt(p.Rank, 10) + "-" + id
}

func parsePlace(text string, order ports.PartOrder) (*ports.PartPlace, error) {
	if text == "" {
		return nil, nil
	}
	rank, id, ranked := strings.Cut(text, "-")
	if !ranked {
		rank, id = "0", text
	}
	part, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		var n int64
		if n, err = strconv.ParseInt(rank, 10, 64); err == nil && ranked == (order != ports.PartsByNumber) {
			if !ranked {
				n = -part
			}
			return &ports.PartPlace{Rank: n, Part: core.StepExecutionID(part)}, nil
		}
	}
	return nil, &RequestError{Field: "after", Value: text, Reason: "it is not next of a page with the same order"}
}
