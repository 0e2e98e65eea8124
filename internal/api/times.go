package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
)

type partsInput struct {
	ExecutionPath
	Step  string `query:"step" maxLength:"1000" doc:"The name of a step, or the number of a step execution; the default is the last step of the execution that has parts"`
	Order string `query:"order" maxLength:"20" doc:"number (the default), duration (the longest first), or status (the failed first, the complete last)"`
	Left  bool   `query:"left" doc:"Only parts that are not complete"`
	After string `query:"after" maxLength:"50" doc:"Only those after this place: next of the previous page"`
	PageSize
}

func (a *api) addTimes(h huma.API) {
	huma.Register(h, get(h, "execution-parts", "/v1/executions/{execution}/parts", "The parts of a step",
		"The partitions of a partitioned step, or the branches of a split on workers, each with the process that had it. Without a step that has parts the list is empty."),
		func(ctx context.Context, in *partsInput) (*output[operator.PartPage], error) {
			return answer(a, ctx, func() (*operator.PartPage, error) {
				return a.Service.Parts(ctx, operator.PartsRequest{
					Execution: in.id(), Step: in.Step, Order: ports.PartOrder(in.Order), Left: in.Left, After: in.After, Limit: in.Limit,
				})
			})
		})
	huma.Register(h, get(h, "execution-timeline", "/v1/executions/{execution}/timeline", "The time line of an execution",
		"When the work of all attempts of its instance began and ended: attempts, steps, parts, tasks, child jobs, and the times for which they waited for a worker or were parked. If there would be more than 2,000 spans, parts and tasks are added up in lanes by worker; the five longest ones of each step and the first hundred that failed stay apart. A wait that the history does not know is not listed; waits of less than 0.1 seconds are not, either."),
		func(ctx context.Context, in *ExecutionPath) (*output[operator.Timeline], error) {
			return answer(a, ctx, func() (*operator.Timeline, error) {
				return a.Service.Timeline(ctx, operator.TimelineRequest{Execution: in.id()})
			})
		})
}
