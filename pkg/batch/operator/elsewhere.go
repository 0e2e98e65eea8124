package operator

import (
	"context"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// elsewhere is what the database of a step's rows says of a step whose record in the history
// says nothing: after a kill the record may be older (rule C18).
type elsewhere struct {
	database string
	// err says why the database cannot be asked; nil: work is committed there.
	err error
}

// findElsewhere asks the databases of unfinished chunk steps whether work is committed there.
func (p *history) findElsewhere(ctx context.Context) {
	s := p.service
	p.elsewhere = map[string]elsewhere{}
	if s.config.Checkpoints == nil {
		return
	}
	for name, h := range p.history {
		database := p.writesTo(name)
		if isFinal(h.Last) || h.Last.HasCommitted() || database == "" || database == s.config.Repository.Database() {
			continue
		}
		found, err := s.config.Checkpoints.HasCommitted(ctx, database, p.exec.InstanceID, name, h.Last.First)
		if found || err != nil {
			p.elsewhere[name] = elsewhere{database, err}
		}
	}
}

// writesTo is the database of a step's writers; empty: they have none.
func (p *history) writesTo(name string) string {
	step, _, _ := strings.Cut(name, ":")
	for _, u := range p.uses {
		if u.Step == step && u.Kind == registry.KindWriter && u.Database != "" {
			return u.Database
		}
	}
	return ""
}

// committedIn names the database in which work of the step is committed that the history does
// not have; empty: there is none. problem says that it is not known, and why.
func (p *history) committedIn(s core.StepExecution) (database, problem string) {
	e, ok := p.elsewhere[s.Name]
	if !ok || p.history[s.Name].Last.ID != s.ID {
		return "", ""
	}
	if e.err != nil {
		return "", e.err.Error()
	}
	return e.database, ""
}
