package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/inbox"
)

// DeadEvent is an event of an inbox that is not offered any more.
type DeadEvent = inbox.Dead

var errNoEvents = errors.New("this service was made without the events of inboxes")

// DeadEvents returns at most limit dead events of inboxes, newest first. A topic of "" means all
// topics.
func (s *TaskService) DeadEvents(ctx context.Context, topic string, limit int) ([]DeadEvent, error) {
	switch {
	case s.events == nil:
		return nil, errNoEvents
	case limit < 1:
		return nil, refuse(refusal.Invalid, fmt.Errorf("limit: it is %d, and must be at least 1", limit))
	}
	return s.events.Dead(ctx, topic, limit)
}

// OfferEvent offers a dead event again, as often and as long as a new one. The answer for an event
// that is not dead is "duplicate".
func (s *TaskService) OfferEvent(ctx context.Context, id int64, by By) (*Acted, error) {
	if s.events == nil {
		return nil, errNoEvents
	}
	answer, err := s.events.Revive(ctx, id, s.who(ctx, by), by.Reason)
	if err != nil {
		return nil, refusalOf(err)
	}
	return &Acted{Answer: string(answer)}, nil
}
