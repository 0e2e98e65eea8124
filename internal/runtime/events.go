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

var errNoEvents = errors.New("this service has no access to the events of inboxes")

// DeadEvents returns at most limit of them, newest first; topic "" means all.
func (s *TaskService) DeadEvents(ctx context.Context, topic string, limit int) ([]DeadEvent, error) {
	switch {
	case s.events == nil:
		return nil, errNoEvents
	case limit < 1:
		return nil, refuse(refusal.Invalid, fmt.Errorf("limit: it is %d, but must be at least 1", limit))
	}
	return s.events.Dead(ctx, topic, limit)
}

// OfferEvent offers a dead event again, like a new one; "duplicate" if it is
// not dead.
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
