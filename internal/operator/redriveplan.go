package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/redrive"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

const (
	plannedItems  = 5_000
	defaultPlan   = 1_000
	plannedOutput = 8 << 20
)

// RedrivePlanRequest requests a dry run of a redrive.
type RedrivePlanRequest struct {
	RedriveRequest
	// Limit is the number of items, if none are Edited; 0 means 1,000, at most
	// 5,000.
	Limit int `json:"limit,omitempty"`
	// After selects greater IDs, if none are Edited: the key of the next page.
	After int64 `json:"after,omitempty"`
}

// RedrivePlan is the predicted effect of a redrive.
type RedrivePlan struct {
	Execution core.JobExecutionID `json:"execution"`
	Step      string              `json:"step" doc:"The step through which the items would run"`
	// Writers are not called.
	Writers  []DryEnd      `json:"writers" doc:"They are not called: items that a database or a file would refuse count as written"`
	Items    []PlannedItem `json:"items" doc:"By number"`
	Written  int           `json:"written"`
	Filtered int           `json:"filtered"`
	Skipped  int           `json:"skipped"`
	Failed   int           `json:"failed"`
	Unknown  int           `json:"unknown"`
	Refused  int           `json:"refused"`
	Next     int64         `json:"next,omitempty" doc:"after of the next page; absent if there is none"`
}

// PlannedItem is the predicted effect of a redrive on an item.
type PlannedItem struct {
	ID      int64  `json:"id" doc:"Number of the skipped item"`
	Outcome string `json:"outcome" enum:"written,filtered,skipped,failed,unknown,refused" doc:"written: its mistake is corrected; filtered: a processor leaves it out; skipped: it would be skipped again; failed: the redrive would fail; unknown: a processor that writes to a database, or an earlier failure, prevents the check; refused: it cannot be redriven"`
	// Item is for the writers.
	Item  json.RawMessage `json:"item,omitempty" doc:"The item that would be written; absent after the first 8 MB"`
	Phase core.Phase      `json:"phase,omitempty"`
	Class string          `json:"class,omitempty"`
	Error string          `json:"error,omitempty" doc:"Why it is not written"`
	Fault
}

// OutcomeRefused: the item cannot be redriven.
const OutcomeRefused = "refused"

// PlanRedrive reads skipped items, edited or as stored, with the reader and the
// processors of their step, and writes nothing. Errors are those of Redrive, but
// an edited item that cannot be redriven is only OutcomeRefused.
func (s *plans) PlanRedrive(ctx context.Context, req RedrivePlanRequest) (*RedrivePlan, error) {
	p := &RedrivePlan{Execution: req.Execution, Writers: []DryEnd{}, Items: []PlannedItem{}}
	err := s.selectPlanned(ctx, &req, p)
	if err != nil {
		return nil, err
	}
	req.partly = true
	l, plan, err := s.redriving.planned(ctx, req.RedriveRequest)
	if err != nil {
		return nil, err
	}
	outcomes := map[int64]PlannedItem{}
	for id := range req.Edited {
		outcomes[id] = PlannedItem{ID: id, Outcome: OutcomeUnknown}
	}
	for _, r := range plan.Refused {
		outcomes[r.Item.ID] = PlannedItem{ID: r.Item.ID, Outcome: OutcomeRefused, Error: r.Reason}
	}
	if p.Step = plan.Step; l != nil {
		p.Writers = append(p.Writers, l.writers...)
		if err := s.sampleRedrive(ctx, l, plan, outcomes); err != nil {
			return nil, err
		}
	}
	p.add(outcomes)
	return p, nil
}

// selectPlanned edits no item, and selects the first that are left.
func (s *plans) selectPlanned(ctx context.Context, req *RedrivePlanRequest, p *RedrivePlan) error {
	switch {
	case req.Limit < 0 || req.Limit > plannedItems || len(req.Edited) > plannedItems:
		return &RequestError{Field: "items", Value: fmt.Sprint(max(req.Limit, len(req.Edited))), Reason: fmt.Sprintf("a plan has 1 to %d items", plannedItems)}
	case req.Edited != nil:
		return nil
	case req.Limit == 0:
		req.Limit = defaultPlan
	}
	left, err := s.redriving.records.SkippedItems(ctx, ports.SkipFilter{Execution: req.Execution, Step: req.Step, Parts: true, Left: true, After: req.After, Limit: req.Limit + 1})
	if err != nil {
		return fmt.Errorf("read the skipped items of execution %d: %w", req.Execution, err)
	}
	left, more := cutPage(left, req.Limit+1)
	if len(left) == 0 {
		return nil // the refusal of a redrive without items
	}
	if more {
		p.Next = left[len(left)-1].ID
	}
	req.Edited = map[int64]Edit{}
	for i := range left {
		req.Edited[left[i].ID] = Edit{}
	}
	return nil
}

func (s *plans) sampleRedrive(ctx context.Context, l *launch, plan *redrive.Plan, outcomes map[int64]PlannedItem) error {
	if err := l.bind(ctx); err != nil {
		return err
	}
	ctx = s.jobs.reading(ctx, l.job)
	steps := l.job.Flow.Steps()
	if whole, is := steps[0].(interface{ Inner() model.Step }); is {
		steps[0] = whole.Inner()
	}
	work, is := steps[0].(*redrive.Step)
	if !is {
		return fmt.Errorf("step %s has no items to redrive", plan.Step)
	}
	parts := plan.Parts
	if len(parts) == 0 {
		parts = []string{plan.Step}
	}
	for _, name := range parts {
		run := &model.StepRun{
			Data: model.StepContext{Name: name, Job: &core.JobExecution{
				JobName: l.job.Name, Params: l.params, Context: core.NewExecutionContext(), Confinement: l.job.Confinement, RedriveOf: plan.Execution,
			}},
			Step: &core.StepExecution{Name: name, Context: core.NewExecutionContext()},
		}
		run.Services.Attempts = s.attempts
		err := work.Sample(ctx, run, func(id int64, got chunk.Sampled) error {
			outcomes[id] = plannedItem(id, got)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func plannedItem(id int64, got chunk.Sampled) PlannedItem {
	item := PlannedItem{ID: id, Outcome: string(got.Fate), Phase: got.Phase, Class: got.Class, Fault: faultOf(got.Fault)}
	switch {
	case got.Fate == chunk.FateFailed && dberr.IsReadOnly(got.Err):
		item.Outcome = OutcomeUnknown
	case got.Fate == chunk.FateWritten:
		item.Item = got.Read
		if n := len(got.Stages); n > 0 {
			item.Item = got.Stages[n-1]
		}
	}
	if got.Err != nil {
		item.Error = got.Err.Error()
	}
	return item
}

func (p *RedrivePlan) add(outcomes map[int64]PlannedItem) {
	counts := map[string]*int{
		string(chunk.FateWritten): &p.Written, string(chunk.FateFiltered): &p.Filtered, string(chunk.FateSkipped): &p.Skipped,
		OutcomeFailed: &p.Failed, OutcomeUnknown: &p.Unknown, OutcomeRefused: &p.Refused,
	}
	size := 0
	for _, id := range slices.Sorted(maps.Keys(outcomes)) {
		item := outcomes[id]
		if size += len(item.Item); size > plannedOutput {
			item.Item = nil
		}
		*counts[item.Outcome]++
		p.Items = append(p.Items, item)
	}
}

func writersOf(d definition, step string, params core.Parameters) (list []DryEnd) {
	for _, u := range d.file.Uses(params) {
		if u.Step == step && u.Kind == registry.KindWriter {
			list = append(list, dryEnd(u))
		}
	}
	return list
}
