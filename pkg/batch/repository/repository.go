package repository

import (
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// DefaultPrefix is the default of Options.Prefix.
const DefaultPrefix = "surfin_"

// Options adjust a repository.
type Options struct {
	// Prefix begins the name of every table; empty means DefaultPrefix. It is a plain lower-case
	// identifier: letters, digits and underscores, not a digit first, at most 30 characters.
	// Migrate and CheckSchema report any other.
	Prefix string
	// Observer receives every transition and its answer; may be nil.
	Observer core.Observer
	// Announcer notifies workers of partitions and parked executions that wait for one. If nil,
	// workers find them in the tables.
	Announcer ports.Announcer
	// Mask is applied to every text about an event before it is stored: messages, results, contexts
	// and skipped items. If nil, they are stored unchanged.
	Mask func(text string) string
}

// Repository is a ports.JobRepository. It is safe for concurrent use.
//
// Every method uses the transaction that ctx carries for the repository's database, if any, else
// its own connection or transaction.
type Repository struct {
	store     *store
	observer  core.Observer
	announcer ports.Announcer // may be nil
	// checkpoints are the two texts of the statement that is executed per chunk, without and with
	// the execution context.
	checkpoints [2]string
}

var _ ports.JobRepository = (*Repository)(nil)

// New returns the repository in db. It does no I/O: CheckSchema reports whether the tables exist.
func New(db tx.Database, options Options) *Repository {
	r := &Repository{store: newStore(db, options.Prefix).masking(options.Mask), observer: core.Observers(options.Observer), announcer: options.Announcer}
	r.checkpoints = [2]string{r.checkpointSQL(false), r.checkpointSQL(true)}
	return r
}

// Database returns the name of the repository's database.
func (r *Repository) Database() string { return r.store.db.Name() }
