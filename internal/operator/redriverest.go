package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/redrive"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// redriveParameters returns the parameters of the newest redrive of the step's items if it is not
// complete, else of one more. An incomplete redrive may have rows in a file that it has not
// published, so no other one begins before it completes (rule C12b).
func (s *Service) redriveParameters(ctx context.Context, req RedriveRequest, plan *redrive.Plan, params core.Parameters) (core.Parameters, error) {
	newest, err := s.newestRedrive(ctx, plan.Execution, func(step string) bool { return overlaps(step, plan.Step) })
	if err != nil {
		return params, err
	}
	if newest != nil && isUnfinished(newest) {
		again, err := withRedrive(params, plan.Execution, plan.Step, redriveNumber(newest.Params))
		if err == nil && again.Key() == newest.Params.Key() {
			return again, s.onlyDue(ctx, req, plan, newest)
		}
		return params, &Refusal{Reason: ReasonRedrive, Execution: plan.Execution,
			Err: fmt.Errorf("execution %d, a redrive of step %s, is %s: complete it with its own parameters before another redrive of these items, or abandon it",
				newest.ID, redrivenStep(newest.Params), newest.Status),
			Actions: []Action{{Kind: ActShow, Execution: newest.ID, Status: newest.Status}, s.restartAction(newest, false), {Kind: ActAbandon, Execution: newest.ID}}}
	}
	same, err := s.newestRedrive(ctx, plan.Execution, func(step string) bool { return step == plan.Step })
	n := int64(1)
	if same != nil {
		n += redriveNumber(same.Params)
	}
	if err != nil {
		return params, err
	}
	return withRedrive(params, plan.Execution, plan.Step, n)
}

// overlaps reports whether two names of steps have items in common: a step has the items of its
// partitions.
func overlaps(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+":") || strings.HasPrefix(b, a+":")
}

func isUnfinished(e *core.JobExecution) bool { return canGoOn(&model.Job{Restartable: true}, e.Status) }

// restOfRedrive returns the plan of a redrive that has committed all items and is not complete, so
// that it publishes its output; nil if there is none.
func (s *Service) restOfRedrive(ctx context.Context, req RedriveRequest) (*redrive.Plan, error) {
	newest, err := s.newestRedrive(ctx, req.Execution, func(step string) bool { return req.Step == "" || step == req.Step })
	if err != nil || newest == nil || !isUnfinished(newest) {
		return nil, err
	}
	_, parts, err := s.partsOfRedrive(ctx, newest)
	if err != nil {
		return nil, err
	}
	return redrive.Nothing(s.config.Repository, req.Execution, redrivenStep(newest.Params), parts), nil
}

// onlyDue restricts the plan to the partitions that the redrive still has to run.
func (s *Service) onlyDue(ctx context.Context, req RedriveRequest, plan *redrive.Plan, of *core.JobExecution) error {
	planned, due, err := s.partsOfRedrive(ctx, of)
	if err != nil || !planned {
		return err
	}
	if left := plan.Only(due); left > 0 {
		req.notice(Notice{Kind: NoticeNotRedriven, Execution: plan.Execution, Items: []string{
			fmt.Sprintf("%d skipped items are of partitions that execution %d has no more to do with: redrive them when it is complete", left, of.ID),
		}})
	}
	return nil
}

// partsOfRedrive returns the recorded names of the partitions that a redrive has not completed, or
// false if it has planned none.
func (s *Service) partsOfRedrive(ctx context.Context, of *core.JobExecution) (planned bool, due []string, err error) {
	seen := map[string]bool{}
	err = s.eachRedrive(ctx, of.RedriveOf, func(e *core.JobExecution) (more bool, err error) {
		if e.InstanceID != of.InstanceID {
			return true, nil
		}
		steps, err := s.config.Repository.Steps(ctx, e.ID)
		if err != nil {
			return false, fmt.Errorf("read the steps of execution %d: %w", e.ID, err)
		}
		for _, step := range steps {
			if !strings.Contains(step.Name, ":") || seen[step.Name] {
				continue
			}
			if seen[step.Name] = true; step.Status != core.StatusCompleted {
				due = append(due, step.Name)
			}
		}
		return true, nil
	})
	slices.Sort(due)
	return len(seen) > 0, due, err
}

// newestRedrive returns the newest execution that redrives items of a step that match accepts;
// nil if there is none.
func (s *Service) newestRedrive(ctx context.Context, of core.JobExecutionID, match func(step string) bool) (newest *core.JobExecution, err error) {
	err = s.eachRedrive(ctx, of, func(e *core.JobExecution) (bool, error) {
		if match(redrivenStep(e.Params)) {
			newest = e
		}
		return newest == nil, nil
	})
	return newest, err
}

// eachRedrive calls f with the redrives of an execution, newest first, until f returns false.
func (s *Service) eachRedrive(ctx context.Context, of core.JobExecutionID, f func(e *core.JobExecution) (more bool, err error)) error {
	filter := ports.ExecutionFilter{RedriveOf: of, Limit: maxRedrives}
	for {
		page, err := s.config.Repository.Executions(ctx, filter)
		if err != nil {
			return fmt.Errorf("find the redrives of execution %d: %w", of, err)
		}
		for i := range page {
			if more, err := f(&page[i]); err != nil || !more {
				return err
			}
		}
		if len(page) < filter.Limit {
			return nil
		}
		filter.Before = page[len(page)-1].ID
	}
}
