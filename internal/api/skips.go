package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type (
	skipsInput struct {
		ExecutionPath
		Step  string `query:"step" maxLength:"1000" doc:"Only items of this step"`
		Phase string `query:"phase" doc:"Only items of this phase: read, process or write"`
		Left  bool   `query:"left" doc:"Only items that were not redriven"`
		After int64  `query:"after" minimum:"0" doc:"Only those with a greater number: next of the previous page"`
		PageSize
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
					Execution: in.id(), Step: in.Step, Phase: core.Phase(in.Phase), Left: in.Left, After: in.After, Limit: in.Limit,
				})
				return &page, err
			})
		})
	huma.Register(h, get(h, "show-skip", "/v1/skips/{skip}", "One skipped item", ""),
		func(ctx context.Context, in *skipPath) (*output[operator.SkipView], error) {
			return answer(a, ctx, func() (*operator.SkipView, error) { return a.Service.Skip(ctx, in.ID) })
		})
}
