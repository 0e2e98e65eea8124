package console

import (
	"context"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// renders counts renderings of a fragment. Each takes a while.
type renders struct {
	*shared[*rendering]
	looks, made atomic.Int64
	takes       time.Duration
	status      int
}

func newRenders() *renders {
	r := &renders{takes: 10 * time.Millisecond, status: http.StatusOK}
	r.shared = newShared[*rendering](time.Now, r.looks.Load)
	return r
}

func (r *renders) get(ctx context.Context, key string) (*rendering, error) {
	return r.shared.get(ctx, key, func(*keptParts) *rendering {
		at := time.Now()
		time.Sleep(r.takes)
		r.made.Add(1)
		return &rendering{status: r.status, at: at, text: []byte(key)}
	})
}

func (r *renders) all(t *testing.T, n int, key string) {
	t.Helper()
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			asked := time.Now()
			made, err := r.get(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, key, string(made.text))
			require.GreaterOrEqual(t, made.at, asked.Add(-oldest))
		})
	}
	group.Wait()
}

func TestWatchersShareOneRenderingASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRenders()
		for second := range 10 {
			r.looks.Add(1) // it sends an event to all
			r.all(t, 100, "a")
			require.EqualValues(t, second+1, r.made.Load())
			time.Sleep(990 * time.Millisecond)
		}
	})
}

func TestARenderingThatMayMissAChangeIsNotShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRenders()
		r.all(t, 10, "a")
		time.Sleep(200 * time.Millisecond)
		r.looks.Add(1) // a change after the rendering
		asked := time.Now()
		made, err := r.get(t.Context(), "a")
		require.NoError(t, err)
		require.False(t, made.at.Before(asked))
		require.Equal(t, leastPace+r.takes-210*time.Millisecond, time.Since(asked), "it waits for its second")
		r.looks.Add(1)
		gone, end := context.WithCancel(t.Context())
		end()
		_, err = r.get(gone, "a")
		require.ErrorIs(t, err, context.Canceled)
		require.EqualValues(t, 2, r.made.Load())
	})
}

func TestARenderingThatTakesLongComesMoreRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRenders()
		r.takes = 200 * time.Millisecond
		began := time.Now()
		for range 10 {
			r.looks.Add(1)
			r.all(t, 10, "a")
		}
		require.GreaterOrEqual(t, time.Since(began), 9*paceOfCost*r.takes)
	})
}

func TestAFailureIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRenders()
		r.status = http.StatusServiceUnavailable
		r.all(t, 10, "a")
		require.EqualValues(t, 1, r.made.Load(), "they asked at once")
		r.status = http.StatusOK
		made, err := r.get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, made.status)
		require.Panics(t, func() {
			_, _ = r.shared.get(t.Context(), "b", func(*keptParts) *rendering { panic("oh") })
		})
		made, err = r.get(t.Context(), "b")
		require.NoError(t, err)
		require.Equal(t, "b", string(made.text))
	})
}

func TestKeptPartsCountAmongTheBytesOfFragments(t *testing.T) {
	t.Parallel()
	s, now := newShared[*rendering](time.Now, nil), time.Now()
	for n := range 3 {
		_, err := s.get(t.Context(), string(rune('a'+n)), func(parts *keptParts) *rendering {
			_, err := kept(parts, now, "timeline", 1, time.Minute, func() (shortTimeline, error) {
				return shortTimeline{drawn: template.HTML(strings.Repeat("x", mostBytes/2))}, nil
			})
			require.NoError(t, err)
			return &rendering{status: http.StatusOK, at: now, text: []byte("page")}
		})
		require.NoError(t, err)
	}
	require.Len(t, s.watched, 1)
	require.Less(t, s.bytes, mostBytes)
}

func TestFragmentsWithoutWatchersAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRenders()
		for i := range 2 * mostWatched {
			r.all(t, 1, string(rune('a'+i)))
		}
		require.Len(t, r.watched, mostWatched)
		time.Sleep(2 * keptTime)
		r.all(t, 1, "a")
		require.Len(t, r.watched, 1)
		require.Equal(t, 1, r.bytes)
	})
}
