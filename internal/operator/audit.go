package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// ActsRequest selects acts, newest first (rule OP4); zero fields select all.
type ActsRequest struct {
	// Since selects acts at or after a time.
	Since time.Time `json:"since,omitzero"`
	// Act is one of ports.Verbs.
	Act   string `json:"act,omitempty"`
	Actor string `json:"actor,omitempty"`
	Job   string `json:"job,omitempty"`
	// Before is the number of the last act of the previous page.
	Before int64 `json:"before,omitempty"`
	Limit  int   `json:"limit,omitempty"`
}

type (
	// ActPage is a page of acts.
	ActPage struct {
		Acts []ActView `json:"acts"`
		// Next is ActsRequest.Before of the next page, or 0.
		Next int64 `json:"next,omitempty"`
	}
	// ActView is an act: its actor and time.
	ActView struct {
		ID        int64               `json:"id"`
		At        time.Time           `json:"at"`
		Act       string              `json:"act"`
		Actor     string              `json:"actor"`
		Job       string              `json:"job,omitempty"`
		Execution core.JobExecutionID `json:"execution,omitempty"`
		Task      int64               `json:"task,omitempty"`
		Detail    string              `json:"detail,omitempty"`
	}
)

// Acts lists the acts of persons, clients and duties: the audit without its transitions.
func (s *Service) Acts(ctx context.Context, req ActsRequest) (ActPage, error) {
	page := ActPage{Acts: []ActView{}}
	if req.Act != "" && !slices.Contains(ports.Verbs(), req.Act) {
		return page, &RequestError{Field: "act", Reason: fmt.Sprintf("there is no act %q; there are %q", req.Act, ports.Verbs())}
	}
	if s.config.Acts == nil {
		return page, fmt.Errorf("the audit: %w", core.ErrNotFound)
	}
	if err := s.Prepare(ctx); err != nil {
		return page, err
	}
	limit := req.Limit
	if limit <= 0 {
		limit = defaultActs
	}
	list, err := s.config.Acts.Acts(ctx, ports.ActFilter{
		Since: req.Since, Verb: req.Act, Actor: req.Actor, JobName: req.Job, Before: req.Before, Limit: limit + 1,
	})
	if errors.Is(err, core.ErrNotFound) {
		return page, &RequestError{Field: "before", Reason: fmt.Sprintf("there is no act %d", req.Before)}
	}
	if len(list) > limit {
		list = list[:limit]
		page.Next = list[limit-1].ID
	}
	for _, a := range list {
		if a.Detail == "for "+a.Actor { // of a launch: the list already shows it
			a.Detail = ""
		}
		page.Acts = append(page.Acts, ActView{a.ID, a.At.UTC(), a.Verb, a.Actor, a.JobName, a.Execution, a.Task, a.Detail})
	}
	return page, err
}

const defaultActs = 50

// PurgeActs deletes old records of the audit: a duty of the leader.
func (s *Service) PurgeActs(ctx context.Context, age time.Duration, limit int) (more bool, err error) {
	n, err := s.config.Acts.PurgeActs(ctx, age, limit)
	return n >= int64(limit), err
}
