package console

import (
	"context"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/operator"
)

// shareable is a value that shared keeps: a rendering.
type shareable interface {
	comparable
	// begun is when it began to read.
	begun() time.Time
	size() int
	// failed reports whether the server is the reason for a page with an error.
	failed() bool
	// every is the least time between two of them; 0 means a second.
	every() time.Duration
}

// shared holds the newest rendering of each fragment that pages watch, so that all its watchers cost one
// rendering a second. It is safe for concurrent use.
type shared[T shareable] struct {
	now func() time.Time
	// looks counts the looks for changes that are over, each of which may have sent events.
	looks func() int64

	mu      sync.Mutex
	watched map[string]*watched[T]
	bytes   int
}

// watched is a fragment that someone watches.
type watched[T shareable] struct {
	last T // zero if there is none
	// look is the number of looks when the last rendering began, pace the least time until the next one.
	look int64
	pace time.Duration
	used time.Time
	size int
	// running is closed at the end of the rendering that is being made; nil if there is none.
	running     chan struct{}
	runningLook int64
	// parts are kept from one rendering to the next.
	parts keptParts
}

const (
	// leastPace is less than the second between two looks, so that a rendering that came late does not delay
	// all later ones.
	leastPace = 900 * time.Millisecond
	// A rendering that takes long comes as much more rarely: it keeps a tenth of a core busy at most.
	paceOfCost = 10
	mostPace   = 15 * time.Second
	// oldest is longer than the second between two looks: else age would cause renderings in addition to those after
	// a look.
	oldest = 1500 * time.Millisecond
	// keptTime is how long a fragment without watchers is kept.
	keptTime    = 30 * time.Second
	mostWatched = 500
	mostBytes   = 32 << 20
)

func newShared[T shareable](now func() time.Time, looks func() int64) *shared[T] {
	if looks == nil {
		looks = func() int64 { return 0 }
	}
	return &shared[T]{now: now, looks: looks, watched: map[string]*watched[T]{}}
}

// get returns a rendering of the fragment that misses no change, if the caller may have received its event:
// no look for changes has ended between its beginning and this request. So it is at most as old as a look,
// or a second and a half if nobody looks. It waits for a rendering that is due. The error is ctx's.
//
// render may panic; the next caller tries again then.
func (s *shared[T]) get(ctx context.Context, key string, render func(parts *keptParts) T) (T, error) {
	var none T
	arrived, look := s.now(), s.looks()
	for {
		s.mu.Lock()
		w := s.find(key)
		w.used = s.now()
		switch {
		case w.running != nil:
			running, joins := w.running, w.runningLook >= look
			s.mu.Unlock()
			if err := await(ctx, running, nil); err != nil {
				return none, err
			}
			s.mu.Lock()
			made := w.last
			s.mu.Unlock()
			if joins && made != none {
				return made, nil
			}
		case w.isFresh(arrived, look):
			defer s.mu.Unlock()
			return w.last, nil
		default:
			if due := w.due(s.now()); due > 0 {
				s.mu.Unlock()
				if err := await(ctx, nil, time.After(due)); err != nil {
					return none, err
				}
				continue
			}
			w.running, w.runningLook = make(chan struct{}), s.looks()
			s.mu.Unlock()
			return s.make(w, render), nil
		}
	}
}

func await(ctx context.Context, running <-chan struct{}, due <-chan time.Time) error {
	select {
	case <-running:
	case <-due:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (w *watched[T]) isFresh(arrived time.Time, look int64) bool {
	return w.has() && w.look >= look && arrived.Sub(w.last.begun()) < oldest
}

// due is how long the next rendering has to wait.
func (w *watched[T]) due(now time.Time) time.Duration {
	if !w.has() {
		return 0
	}
	return w.pace - now.Sub(w.last.begun())
}

func (w *watched[T]) has() bool {
	var none T
	return w.last != none
}

// make renders for all who wait. A failure of the server is for them alone: the next caller tries again.
func (s *shared[T]) make(w *watched[T], render func(parts *keptParts) T) T {
	began := s.now()
	var made, none T
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bytes -= w.size
		w.last, w.look, w.size = made, w.runningLook, 0
		if made != none {
			w.pace = min(mostPace, max(leastPace, made.every(), paceOfCost*s.now().Sub(began)))
			w.size = made.size() + w.parts.size()
			if made.failed() {
				w.look = -1
			}
		}
		s.bytes += w.size
		close(w.running)
		w.running = nil
		s.forget()
	}()
	made = render(&w.parts)
	return made
}

func (s *shared[T]) find(key string) *watched[T] {
	w := s.watched[key]
	if w == nil {
		w = &watched[T]{}
		s.watched[key] = w
	}
	return w
}

// forget drops the fragments that nobody has asked for lately, and more if they are too many or too large.
func (s *shared[T]) forget() {
	for key, w := range s.watched {
		if w.running == nil && s.now().Sub(w.used) > keptTime {
			s.drop(key)
		}
	}
	for len(s.watched) > mostWatched || s.bytes > mostBytes {
		first := ""
		for key, w := range s.watched {
			if w.running == nil && (first == "" || w.used.Before(s.watched[first].used)) {
				first = key
			}
		}
		if first == "" {
			return
		}
		s.drop(first)
	}
}

func (s *shared[T]) drop(key string) {
	s.bytes -= s.watched[key].size
	delete(s.watched, key)
}

// keptParts are parts of a rendering that change more rarely than the rest, by their name. They belong to one
// fragment, and one rendering at a time uses them.
type keptParts struct {
	parts map[string]keptPart
	// inspected is the execution of the page.
	inspected *operator.Inspected
}

// size is about the number of bytes that they need.
func (k *keptParts) size() int {
	n := 0
	if k.inspected != nil {
		n = k.inspected.Size()
	}
	for _, p := range k.parts {
		const least = 200
		n += least
		if of, is := p.value.(interface{ size() int }); is {
			n += of.size()
		}
	}
	return n
}

type keptPart struct {
	of    any
	at    time.Time
	value any
}

// inspection has the data of an earlier rendering; nil if there is none.
func (k *keptParts) inspection() *operator.Inspected {
	if k == nil {
		return nil
	}
	return k.inspected
}

func (k *keptParts) remember(read *operator.Inspected) {
	if k != nil {
		k.inspected = read
	}
}

// kept returns a part of a fragment: the one that an earlier rendering has read of the same state, if it is
// not older than age, else a new one. A page that is rendered by itself keeps none: earlier is nil.
func kept[T any](earlier *keptParts, now time.Time, name string, of any, age time.Duration, read func() (T, error)) (T, error) {
	if earlier == nil {
		return read()
	}
	if p, known := earlier.parts[name]; known && p.of == of && now.Sub(p.at) < age {
		if value, is := p.value.(T); is {
			return value, nil
		}
	}
	value, err := read()
	if err != nil {
		return value, err
	}
	if earlier.parts == nil {
		earlier.parts = map[string]keptPart{}
	}
	earlier.parts[name] = keptPart{of, now, value}
	return value, nil
}
