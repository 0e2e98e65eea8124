package operator

import (
	"context"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// elsewhere is the state of a step in the database of its rows, for a step without progress in the
// history: after a kill the history may be older (rule C18).
type elsewhere struct {
	database string
	// err is why the database cannot be queried; nil means that work is committed there.
	err error
}

func (p *findings) findElsewhere(ctx context.Context) {
	p.elsewhere = map[string]elsewhere{}
	if p.checkpoints == nil {
		return
	}
	for name, h := range p.history {
		database := p.writesTo(name)
		if isFinal(h.Last) || h.Last.HasCommitted() || database == "" || database == p.records.Database() {
			continue
		}
		found, err := p.checkpoints.HasCommitted(ctx, database, p.exec.InstanceID, name, h.Last.First)
		if found || err != nil {
			p.elsewhere[name] = elsewhere{database, err}
		}
	}
}

func (p *findings) writesTo(name string) string {
	step, _, _ := strings.Cut(name, ":")
	for _, u := range p.uses {
		if u.Step == step && u.Kind == registry.KindWriter && u.Database != "" {
			return u.Database
		}
	}
	return ""
}

// committedIn returns the database that has committed work of the step that the history lacks;
// empty if there is none. problem is why this is unknown.
func (p *findings) committedIn(s core.StepExecution) (database, problem string) {
	e, ok := p.elsewhere[s.Name]
	if !ok || p.history[s.Name].Last.ID != s.ID {
		return "", ""
	}
	if e.err != nil {
		return "", e.err.Error()
	}
	return e.database, ""
}
