package access

import (
	"math"
	"sync"
	"time"
)

const maxBuckets = 10_000

// rate is per second, and as many at once.
type limiter struct {
	rate float64
	now  func() time.Time

	mu      sync.Mutex
	buckets map[string]bucket
}

type bucket struct {
	left float64
	at   time.Time
}

func newLimiter(rate int, now func() time.Time) *limiter {
	return &limiter{rate: float64(rate), now: now, buckets: map[string]bucket{}}
}

func (l *limiter) take(client string) time.Duration {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b, known := l.buckets[client]
	if !known {
		l.makeRoom(now)
		b = bucket{left: l.rate, at: now}
	}
	b = bucket{left: math.Min(l.rate, b.left+max(0, now.Sub(b.at).Seconds())*l.rate), at: now}
	if b.left < 1 {
		l.buckets[client] = b
		return time.Duration((1 - b.left) / l.rate * float64(time.Second))
	}
	b.left--
	l.buckets[client] = b
	return 0
}

func (l *limiter) makeRoom(now time.Time) {
	if len(l.buckets) < maxBuckets {
		return
	}
	for client, b := range l.buckets {
		if b.left+now.Sub(b.at).Seconds()*l.rate >= l.rate {
			delete(l.buckets, client)
		}
	}
	if len(l.buckets) >= maxBuckets {
		clear(l.buckets)
	}
}
