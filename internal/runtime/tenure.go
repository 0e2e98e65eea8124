package runtime

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// tenure is a time during which one heartbeat kept the lease of all executions.
// If it could not be renewed, they end, and another tenure begins with the next
// heartbeat that arrives (rule L9).
type tenure struct {
	source *taskSource
	keeper *lease.Keeper
	over   chan struct{}
	grace  atomic.Int64 // taskports.Confirmed.Grace of its last heartbeat

	mu    sync.Mutex
	cause error // why it has ended
	held  map[task.ID]*execution
	empty chan struct{} // closed when it has ended and none of its executions runs any more
}

func newTenure(s *taskSource, since, grace time.Duration) *tenure {
	t := &tenure{source: s, over: make(chan struct{}), held: map[task.ID]*execution{}, empty: make(chan struct{})}
	t.grant(grace)
	t.keeper = lease.New(lease.Config{
		Clock: s.clock(), Lease: s.config.Lease, Heartbeat: s.config.Heartbeat, Since: since, Grace: t.graceNow, Beat: t.beat, End: t.end,
		Failed: s.heartbeatFailed,
	})
	return t
}

func (t *tenure) grant(grace time.Duration) {
	t.grace.Store(int64(grace))
	t.source.grace.Store(int64(grace))
}

func (t *tenure) graceNow() time.Duration { return time.Duration(t.grace.Load()) }

func (t *tenure) beat(ctx context.Context) error {
	confirmed, err := t.source.tasks.Executions.Heartbeat(ctx, t.source.claimant(), t.refs())
	if err != nil {
		return err
	}
	t.grant(confirmed.Grace)
	for _, l := range confirmed.Lost {
		t.lose(l)
	}
	return nil
}

func (t *tenure) refs() []taskports.Ref {
	t.mu.Lock()
	defer t.mu.Unlock()
	refs := make([]taskports.Ref, 0, len(t.held))
	for _, e := range t.held {
		if e.claimed != nil {
			refs = append(refs, e.claimed.Ref)
		}
	}
	slices.SortFunc(refs, func(a, b taskports.Ref) int { return int(a.ID - b.ID) })
	return refs
}

func (t *tenure) lose(l taskports.Lost) {
	t.mu.Lock()
	e := t.held[l.Ref.ID]
	if e != nil && (e.claimed == nil || e.claimed.Ref != l.Ref) {
		e = nil
	}
	t.mu.Unlock()
	if e != nil {
		e.end(l.Cause)
	}
}

func (t *tenure) end(cause error) {
	t.mu.Lock()
	if t.cause != nil {
		t.mu.Unlock()
		return
	}
	t.cause = cause
	all := make([]*execution, 0, len(t.held))
	for _, e := range t.held {
		all = append(all, e)
	}
	if len(t.held) == 0 {
		close(t.empty)
	}
	t.mu.Unlock()
	close(t.over)
	for _, e := range all {
		e.end(cause)
	}
}

func (t *tenure) add(e *execution) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil || t.held[e.delivery.ID] != nil {
		return false
	}
	t.held[e.delivery.ID] = e
	return true
}

func (t *tenure) claim(e *execution, claimed *taskports.Claimed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.claimed = claimed
}

func (t *tenure) remove(e *execution) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held, e.delivery.ID)
	if t.cause != nil && len(t.held) == 0 {
		close(t.empty)
	}
}

func (s *taskSource) keepTenures(ctx context.Context) error {
	var ending sync.WaitGroup
	defer ending.Wait()
	var failing time.Time
	for ctx.Err() == nil {
		t, err := s.beginTenure(ctx)
		if err != nil {
			if failing.IsZero() {
				failing = time.Now()
			} else if time.Since(failing) > s.config.Lease {
				return err
			}
			s.heartbeatFailed(err)
			sleep(ctx, s.config.Poll)
			continue
		}
		failing = time.Time{}
		select {
		case <-t.over:
		case <-ctx.Done():
			t.end(task.ErrStopping)
		}
		s.setTenure(nil)
		ending.Go(func() {
			<-t.empty
			t.keeper.Stop()
			t.keeper.Wait()
		})
	}
	return nil
}

func (s *taskSource) beginTenure(ctx context.Context) (*tenure, error) {
	since := s.clock().Now()
	answer, cancel := context.WithTimeoutCause(ctx, s.config.Lease/3, errors.New("no response to the first heartbeat"))
	defer cancel()
	confirmed, err := s.tasks.Executions.Heartbeat(answer, s.claimant(), nil)
	if err != nil {
		if cause := context.Cause(answer); cause != nil && ctx.Err() == nil {
			err = errors.Join(cause, err)
		}
		return nil, err
	}
	t := newTenure(s, since, confirmed.Grace)
	t.keeper.Start(ctx)
	s.setTenure(t)
	return t, nil
}

func (s *taskSource) heartbeatFailed(err error) {
	s.tasks.Observer.Observe(context.Background(), core.HeartbeatFailed{Err: err})
}
