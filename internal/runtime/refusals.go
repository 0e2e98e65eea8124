package runtime

import (
	"sync"
	"time"
)

// Each refusal doubles it.
const (
	firstRefusal = time.Second
	maxRefusal   = time.Minute
)

// A missing file or database may be there later.
type refusals struct {
	first  time.Duration
	mu     sync.Mutex
	byHash map[string]postponed
}

type postponed struct {
	until time.Time
	pause time.Duration
}

// Several partitions that were refused at once count as one.
func (r *refusals) add(hash string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.byHash[hash]
	if now.Before(last.until) {
		return
	}
	pause := min(max(r.first, 2*last.pause), max(r.first, maxRefusal))
	r.byHash[hash] = postponed{until: now.Add(pause), pause: pause}
}

func (r *refusals) left(hash string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, r.byHash[hash].until.Sub(now))
}

func (r *refusals) remove(hash string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byHash, hash)
}

func (r *refusals) hashes(now time.Time) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for hash, last := range r.byHash {
		if now.Before(last.until) {
			list = append(list, hash)
		}
	}
	return list
}
