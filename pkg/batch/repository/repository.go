package repository

import (
	"cmp"

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

// Repository has the ports of the history in one database. It is safe for concurrent use.
//
// Every method uses the transaction that ctx carries for the repository's database, if any, else
// its own connection or transaction.
type Repository struct {
	ports.Repository
	*definitions
	*figures
	*acts
	*attention
	*jobHistory
	*changeReader
	*announcements // for TasksEnded
	*tables

	store *store
	plans *plans // for Patient
}

// New returns the repository in db. It does no I/O: CheckSchema reports whether the tables exist.
func New(db tx.Database, options Options) *Repository {
	s := newStore(db, cmp.Or(options.Prefix, DefaultPrefix)).masking(options.Mask)
	audits := &auditor{store: s, observer: core.Observers(options.Observer)}
	ready := &announcements{store: s, announcer: options.Announcer}
	ends := &endings{store: s, auditor: audits, announcements: ready}
	moves := &moves{ends}
	guard := &jobGuard{moves}
	stops := &stops{moves}
	lost := &takeovers{ends}
	reads := newExplorer(s)
	times := &spanReads{s}
	places := &placements{audits}
	plans := &plans{jobGuard: guard, places: places}
	assigned := &assignments{moves: moves, reads: reads, places: places}
	return &Repository{
		Repository: ports.Repository{
			Launches:        &launches{takeovers: lost, reads: reads, places: places},
			Stops:           stops,
			Transitions:     &transitions{guard},
			PartitionPlans:  plans,
			Parks:           &parks{moves: moves, parts: assigned, takeovers: lost, reads: reads, places: places},
			Assignments:     assigned,
			PlacedWork:      places,
			Operations:      &operations{moves: moves, takeovers: lost, stops: stops, reads: reads},
			CheckpointStore: newOwnCheckpoints(s),
			Explorer:        reads,
			BulkExplorer:    newBulk(s, reads),
			Spans:           times,
			Parts:           &partPages{times},
			Searches:        &searches{s},
			Skips:           &skips{s},
			Attempts:        &attempts{s},
			Journal:         &journal{s},
			Requests:        &requests{s},
			Logs:            &logs{s},
			Series:          &seriesRows{s},
		},
		definitions: &definitions{s}, figures: &figures{s}, acts: &acts{s}, changeReader: &changeReader{s}, attention: &attention{s}, jobHistory: &jobHistory{s}, announcements: ready, tables: &tables{s},
		store: s, plans: plans,
	}
}

// Ports returns the ports of the engine.
func (r *Repository) Ports() ports.Repository { return r.Repository }
