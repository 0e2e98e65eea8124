package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/runtime"
)

type (
	eventsInput struct {
		Topic string `query:"topic" maxLength:"100" doc:"Only events of this topic"`
		PageSize
	}
	eventList struct {
		Events []runtime.DeadEvent `json:"events"`
	}
	offerInput struct {
		ID int64 `path:"event" minimum:"1" doc:"Number of an event"`
		KeyHeader
		Body *ReasonBody
	}
	offered struct {
		ID      int64 `json:"id" doc:"The event"`
		Applied bool  `json:"applied" doc:"False if it was not dead"`
	}
)

func (a *api) addEvents(h huma.API) {
	huma.Register(h, get(h, "list-dead-events", "/v1/events", "Dead events of inboxes, newest first", "Events that could not be processed too often or for too long; their effect is missing."),
		func(ctx context.Context, in *eventsInput) (*output[eventList], error) {
			return answer(a, ctx, func() (*eventList, error) {
				list, err := a.Tasks.DeadEvents(ctx, in.Topic, in.size())
				return &eventList{list}, err
			})
		})
	huma.Register(h, post(h, "offer-event", "/v1/events/{event}/offer", "Retry a dead event", "Its application receives it again, as often and as long as a new one, when it processes the topic next."),
		func(ctx context.Context, in *offerInput) (*keyed[offered], error) {
			return once(a, ctx, in.Key, request{"offer-event", in.ID, in.Body}, func(ctx context.Context, _ ports.RequestKey) (*offered, error) {
				got, err := actedOnTask(in.ID, a.Tasks.OfferEvent)(ctx, in.Body)
				if err != nil {
					return nil, err
				}
				return &offered{got.ID, got.Applied}, nil
			})
		})
}
