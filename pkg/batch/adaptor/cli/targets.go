package cli

import (
	"slices"
	"strings"
	"sync"

	"github.com/surfin-batch/surfin/pkg/batch/operator"
)

// targets remembers where the writers of an execution write to, so that the
// summary can name tables and files: a newcomer looks for his rows.
type targets struct {
	mu   sync.Mutex
	list []operator.Target
}

func (t *targets) add(found operator.Target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.list, found) {
		t.list = append(t.list, found)
	}
}

func (t *targets) all() []operator.Target {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.list)
}

// targetText is "load: table strikes in sqlite /data/surfin.db", a line each.
func (env *environment) targetText(list []operator.Target) string {
	var b strings.Builder
	for _, t := range list {
		b.WriteString(t.Step + ": " + t.Writer + " " + t.Target)
		if t.Database != "" {
			b.WriteString(" in " + env.databaseText(t.Database))
		}
		b.WriteString("\n")
	}
	return b.String()
}
