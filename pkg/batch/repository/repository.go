package repository

import (
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// DefaultPrefix begins the name of every table, unless Options say otherwise.
const DefaultPrefix = "surfin_"

// Options adjust a repository.
type Options struct {
	// Prefix begins the name of every table; empty: DefaultPrefix. It is a plain
	// lower-case identifier: letters, digits and underscores, not a digit first, at
	// most 30 characters. Another one is reported by Migrate and CheckSchema.
	Prefix string
	// Observer hears of every transition and its answer; may be nil.
	Observer core.Observer
	// Announcer tells workers of parts and parked executions that wait for one; nil: nobody
	// does, and they find them in the tables.
	Announcer core.Announcer
	// Mask is applied to every text that says what happened, before it is stored: messages,
	// results, contexts and skipped items; nil: they are stored as they are.
	Mask func(text string) string
}

// Repository is a core.JobRepository. It is safe for concurrent use.
//
// Every method uses the transaction that ctx carries for the repository's
// database, if there is one, and else a connection or transaction of its own.
type Repository struct {
	store     *store
	observer  core.Observer
	announcer core.Announcer // nil: none
	// checkpoints are the texts of the one statement that is executed per chunk,
	// without and with the execution context.
	checkpoints [2]string
}

var _ core.JobRepository = (*Repository)(nil)

// New returns the repository in db. It does no I/O: CheckSchema says whether the
// tables are there.
func New(db tx.Database, options Options) *Repository {
	r := &Repository{store: newStore(db, options.Prefix).masking(options.Mask), observer: core.Observers(options.Observer), announcer: options.Announcer}
	r.checkpoints = [2]string{r.checkpointSQL(false), r.checkpointSQL(true)}
	return r
}

// Database returns the name of the database in which the repository lives.
func (r *Repository) Database() string { return r.store.db.Name() }
