package jsonfile

import (
	"fmt"
	"sync"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// The values of Config.Unknown; an empty one is ignore.
const (
	UnknownError  = "error"
	UnknownWarn   = "warn"
	UnknownIgnore = "ignore"
)

const maxUnknown = 20

// Documents may be read ahead of the commit that needs them.
type unknownKeys struct {
	mu    sync.Mutex
	seen  map[string]bool
	texts []string
}

// UnknownKeys returns the handler of keys that the item type does not have; nil means that they are ignored.
func (r *Reader) UnknownKeys() func(path string) error {
	switch r.cfg.Unknown {
	case UnknownError:
		return func(path string) error { return &item.UnknownKeyError{Path: path} }
	case UnknownWarn:
		r.unknown = &unknownKeys{seen: map[string]bool{}}
		return func(path string) error {
			r.unknown.add(path, r.Meta())
			return nil
		}
	}
	return nil
}

func (u *unknownKeys) add(path string, meta item.Meta) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.seen[path] || len(u.seen) == maxUnknown {
		return
	}
	u.seen[path] = true
	u.texts = append(u.texts, fmt.Sprintf("%s: the key %q is not in the item type, so it is not read", meta, path))
}

// Warnings implements item.Warner.
func (r *Reader) Warnings() []string {
	if r.unknown == nil {
		return nil
	}
	r.unknown.mu.Lock()
	defer r.unknown.mu.Unlock()
	texts := r.unknown.texts
	r.unknown.texts = nil
	return texts
}
