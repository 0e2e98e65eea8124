package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

type actsInput struct {
	Since  time.Time `query:"since" doc:"Only acts at or after this time"`
	Job    string    `query:"job" maxLength:"1000" doc:"Only acts on this job"`
	Actor  string    `query:"actor" maxLength:"1000" doc:"Only acts of this user or client"`
	Act    string    `query:"act" maxLength:"100" doc:"Only acts of this kind, such as run, stop or set"`
	Before int64     `query:"before" minimum:"0" doc:"Only acts with a smaller number: next of the previous page"`
	PageSize
}

type me struct {
	// Client is empty on a server without tokens.
	Client string        `json:"client,omitempty" doc:"The name of the client, or of the user that a proxy has signed in"`
	Role   settings.Role `json:"role" enum:"viewer,operator" doc:"A viewer reads, an operator does everything"`
	// Until is empty for a token.
	Until *time.Time `json:"until,omitempty" doc:"When the session ends, if the client has signed in"`
}

func (a *api) addAudit(h huma.API) {
	huma.Register(h, get(h, "me", "/v1/me", "The caller", "The client that this request is from, and its role."),
		func(ctx context.Context, _ *struct{}) (*output[me], error) {
			c := access.CallerOf(ctx)
			m := me{Client: c.Name, Role: c.Role}
			if !c.Until.IsZero() {
				m.Until = &c.Until
			}
			return &output[me]{m}, nil
		})
	huma.Register(h, get(h, "list-acts", "/v1/audit", "The acts of users and clients, newest first",
		"Acts of users, clients and the leader. For operators only: a viewer gets 403."),
		func(ctx context.Context, in *actsInput) (*output[operator.ActPage], error) {
			return answer(a, ctx, func() (*operator.ActPage, error) {
				if c := access.CallerOf(ctx); c.Role != settings.Operator {
					return nil, onlyOperators("the audit")
				}
				page, err := a.Service.Acts(ctx, operator.ActsRequest{Since: in.Since, Job: in.Job, Actor: in.Actor, Act: in.Act, Before: in.Before, Limit: in.size()})
				return &page, err
			})
		})
}

func onlyOperators(what string) *Problem {
	return newProblem(http.StatusForbidden, what+" is for operators: use the token of one (api.operator_tokens.NAME), or ask for that role")
}
