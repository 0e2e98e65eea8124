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

func (u *unknownKeys) add(path string, meta item.Meta) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.seen[path] || len(u.seen) == maxUnknown {
		return
	}
	u.seen[path] = true
	u.texts = append(u.texts, fmt.Sprintf("%s: the key %q is not in the item type, so it is not read", meta, path))
}

func (u *unknownKeys) take() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	texts := u.texts
	u.texts = nil
	return texts
}
