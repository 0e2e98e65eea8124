package repository

import (
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// DefaultPrefix is Options.Prefix's default.
const DefaultPrefix = "surfin_"

// Options adjust a repository.
type Options struct {
	// Prefix begins table names: lower-case letters, digits, underscores, no digit first, at most 30; else
	// Migrate and CheckSchema fail. Empty means DefaultPrefix.
	Prefix string
	// Observer receives every transition; may be nil.
	Observer core.Observer
	// Announcer notifies workers; if nil, they poll.
	Announcer ports.Announcer
	// Mask is applied to texts, results, contexts and skipped items before storing; nil for none.
	Mask func(text string) string
}

// Repository is a ports.JobRepository, safe for concurrent use. Methods use ctx's transaction, if any.
type Repository struct {
	store     *store
	observer  core.Observer
	announcer ports.Announcer // may be nil
	// checkpoints: without and with the context.
	checkpoints [2]string
}

var _ ports.JobRepository = (*Repository)(nil)

// New does no I/O: see CheckSchema.
func New(db tx.Database, options Options) *Repository {
	r := &Repository{store: newStore(db, options.Prefix).masking(options.Mask), observer: core.Observers(options.Observer), announcer: options.Announcer}
	r.checkpoints = [2]string{r.checkpointSQL(false), r.checkpointSQL(true)}
	return r
}

// Database returns its name.
func (r *Repository) Database() string { return r.store.db.Name() }
