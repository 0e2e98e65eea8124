package itemextra

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// InnerPositions returns the positions of the writers inside a writer if its position at is a JSON
// object with positions under `writers`: a writer that passes its items to others. Otherwise it returns
// at alone.
func InnerPositions(at item.Position) []item.Position {
	var outer struct {
		Writers []json.RawMessage `json:"writers"`
	}
	if err := json.Unmarshal(at, &outer); err != nil || outer.Writers == nil {
		return []item.Position{at}
	}
	var list []item.Position
	for _, inner := range outer.Writers {
		if string(inner) != "null" {
			list = append(list, InnerPositions(item.Position(inner))...)
		}
	}
	return list
}

// ChangesAccepter is implemented by readers that refuse to continue in an input that changed since they
// read it. AcceptChanges is called before Open if the operator takes responsibility for the changes:
// the reader then continues after the last read item, if it can tell that this is possible (rule C15).
type ChangesAccepter interface {
	AcceptChanges()
}

// Warner is implemented by readers that notice problems that stop nothing but that a person should
// know, such as a key that the item type does not have. Warnings returns the warnings since its last
// call; it is called before a commit, which stores them with the step, also while the reader reads
// ahead.
type Warner interface {
	Warnings() []string
}

// LeftOuter is implemented by writers to a target that may leave out items, such as a table with a
// trigger that drops rows (rule C11a).
type LeftOuter interface {
	// CountLeftOut is called once, before Open, by an engine that calls LeftOut after each successful
	// Write. Without it a Write fails if the target leaves out items.
	CountLeftOut()
	// LeftOut returns how many items the target left out since the last call. They are not counted as
	// written.
	LeftOut() int64
	// LeftOutError returns the error of a step that left out n of its items to write; nil accepts them.
	LeftOutError(n, of int64) error
}

// Tally counts the results of a step's items, over all its attempts.
type Tally struct{ Read, Written, Filtered, Skipped int64 }

// Tallier is implemented by Completers that depend on the results of the items: Tally is called before
// Complete. Items that could not be read count only as Skipped.
type Tallier interface {
	Tally(t Tally)
}

// PartsPreparer is implemented by writers that create their target in the transaction of their first
// items. In a partitioned step PrepareParts is called once, in a transaction before the parts are
// stored, on a writer that is made for the first part and never opened.
type PartsPreparer interface {
	PrepareParts(ctx context.Context) error
}

// Revocable is implemented by processors that filter items depending on the chunk's transaction, such
// as keys in a table. If that rolls back, the items filtered in it are processed again (rule OB3);
// items filtered by other processors are not.
type Revocable interface {
	Revocable()
}

// Encoder is implemented by [Writer]s that can encode items separately from sending them: the next
// chunk is encoded while this one is written (rule C20b).
type Encoder interface {
	// NewEncoding returns room for one chunk, or nil if the writer encodes while it writes.
	NewEncoding() item.Encoding
	// WriteEncoded writes the encoded items, like Write. done is false if the encoding is no longer
	// valid, for example after the table has changed: nothing is written then, and the caller calls
	// Write.
	WriteEncoded(ctx context.Context, e item.Encoding) (done bool, err error)
}

// AheadWriter is implemented by writers with an [Encoder], a position and a Rewind that may write a chunk,
// and make it durable, while the one before it commits (rule C20c).
type AheadWriter interface {
	// WritesAhead reports whether content beyond the committed position is private, and a restart removes
	// it. It is called after Open.
	WritesAhead() bool
}

// BatchProcessor is implemented by [Processor]s that process many items with one call.
type BatchProcessor interface {
	// ProcessAll processes the items of in from index from up to to, in order, like the processor's
	// Advance, and appends the outputs to out. It returns to, or the index of the first item without an
	// output and the reason: ErrFilter, or the failure.
	ProcessAll(ctx context.Context, in item.Items, from, to int, out item.Items) (next int, err error)
}

// PositionWatcher is implemented by the results of [EraseReader]. WatchPosition makes the reader
// compare the position before each Read with the one after a failure: if it has changed, the error
// becomes a [ConsumedError]. It reports whether the reader has a position to watch.
type PositionWatcher interface {
	WatchPosition() bool
}

// Locator is implemented by [Writer]s that can find the item that made a Write fail. Locate is called
// in a transaction that is rolled back, after the failed one: it may write. It returns the item's
// index; false if no single item is at fault, or it cannot tell.
type Locator interface {
	Locate(ctx context.Context, items item.Items, failure error) (place int, found bool)
}

// IsIndependent reports whether a component declares itself [item.Independent] of a database.
func IsIndependent(component any, database string) bool {
	i, ok := component.(item.Independent)
	return ok && i.IndependentOf(database)
}

// publisher is implemented by finishers that may have nothing to publish: a writer made of other
// writers asks them.
type publisher interface{ Publishes() bool }

// Publishes reports whether a component publishes its output when its step completes: a Finisher does,
// unless its publisher reports false.
func Publishes(component any) bool {
	if p, ok := component.(publisher); ok {
		return p.Publishes()
	}
	_, ok := component.(item.Finisher)
	return ok
}

// AnyCell is an [item.Cell] of a type that the caller cannot name. Processors of items of every type (filter,
// validate) read the cell of their chain through it. Both methods concern the item currently in the
// cell.
type AnyCell interface {
	// Value returns the item's location in the cell. It is the same for all items of the chain, so it
	// is called once, and is for reading only.
	Value() reflect.Value
	// Origin returns the origin of the item.
	Origin() item.Meta
}

// Joiner is implemented by writers that may write one target from all parts of a partitioned step (rule C15w).
type Joiner interface {
	item.Positioner
	item.Releaser
	item.Finisher
	item.Closer
	// Joins reports whether this one does.
	Joins() bool
	// JoinParts is Open of the writer of the whole step: instead of items it takes the work of completed parts, given by
	// their last positions, in order. at is its own position from an earlier attempt; one of other work is ignored.
	JoinParts(ctx context.Context, at item.Position, parts []item.Position) error
}

// Stager is implemented by a Finisher that needs a commit before its work is done: Stage prepares it after the
// commit that comes before Finish, and if it reports true, the position is committed once more (rule OB3). It is
// called again after a failure and after a crash.
type Stager interface {
	Stage(ctx context.Context) (staged bool, err error)
}

// Stage stages a component, if it is a Stager.
func Stage(ctx context.Context, component any) (bool, error) {
	if s, is := component.(Stager); is {
		return s.Stage(ctx)
	}
	return false, nil
}
