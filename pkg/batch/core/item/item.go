package item

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
)

// ItemReader delivers the items of a chunk step one by one.
//
// Read returns io.EOF after the last item, and again whenever it is called
// after that. A Read that fails has consumed nothing: the next Read is about the
// same item (rule C1), unless its error says otherwise: a [ConsumedError] is the
// reader's word that the item is used up and the next Read is about the one after it.
// One goroutine at a time calls it, but not always the same one. What Read
// returns belongs to the engine.
//
// A reader may also implement [Opener], [ChangesAccepter], [Positioner], [Marker],
// [Closer], [Skipper], [MetaReader], [RawReader] and [RawOpener]; they are asked for once, when the step starts.
type ItemReader[T any] interface {
	Read(ctx context.Context) (T, error)
}

// ConsumedError is the error of a Read that has consumed its item (rule C1): a line
// that does not parse stays wrong however often it is read, so the reader steps over
// it, and the next Read is about the item after it. To the engine it is an outcome like
// an item: it may be skipped and counts for the position (rule C15a), but a second Read
// would lose an item.
//
// Err alone decides about retry and skip.
type ConsumedError struct {
	// Meta is where the item came from; zero if unknown.
	Meta Meta
	// Err is what is wrong with the item, usually made by exception.InvalidItem.
	Err error
}

// Consumed wraps err, which a Read returns after it consumed its item. An error
// that says so already keeps what it knows.
func Consumed(meta Meta, err error) error {
	if IsConsumed(err) {
		return err
	}
	return &ConsumedError{Meta: meta, Err: err}
}

// IsConsumed reports whether the Read that failed with err consumed its item.
func IsConsumed(err error) bool {
	var c *ConsumedError
	return errors.As(err, &c)
}

// Error returns where the item came from and the cause, as "path:line: cause".
func (e *ConsumedError) Error() string {
	if where := e.Meta.String(); where != "" {
		return where + ": " + e.Err.Error()
	}
	return e.Err.Error()
}

// Unwrap returns what is wrong with the item.
func (e *ConsumedError) Unwrap() error { return e.Err }

// ItemProcessor turns one item into another.
//
// It returns an item, [ErrFilter] (the item is left out and counted as filtered,
// once), or an error. With `concurrency` above 1 several goroutines call it.
// It must not change a pointer item in place: the item may be processed again
// (rule C4).
//
// A processor may also implement [Opener], [Positioner], [Rewinder], [Closer], [MetaProcessor],
// [Revocable], [Independent] and [Finisher]. One that keeps something from item to item implements
// Positioner and Opener: the engine then takes it back where items are processed again, and it has
// never seen an item that is skipped (rule C4a).
type ItemProcessor[I, O any] interface {
	Process(ctx context.Context, item I) (O, error)
}

// ErrFilter is the error of an ItemProcessor that leaves the item out.
var ErrFilter = errors.New("item filtered")

// ItemWriter writes the items of one chunk, in order, in the chunk's
// transaction where ctx carries one (package tx).
//
// The slice and its items belong to the engine and are reused once Write
// returned; a writer that needs them longer copies them (rule C4). Write may be
// called more than once with the same items, after a rollback.
//
// A writer may also implement [Opener], [Positioner], [Closer], [Completer], [Preparer],
// [Rewinder], [Releaser] and [Finisher].
type ItemWriter[T any] interface {
	Write(ctx context.Context, items []T) error
}

// Position is where a stream stands: small JSON, opaque to the engine, nil at
// the start. It is stored with every committed chunk (at most 8 KB, rule D4).
type Position []byte

// JSON returns the position as a JSON value, null where there is none.
func (p Position) JSON() json.RawMessage {
	if len(p) == 0 {
		return json.RawMessage("null")
	}
	return json.RawMessage(p)
}

// Opener is implemented by components that acquire something when their step
// starts. Open is called once, before the first item, with the position of the
// last committed chunk on a restart and nil otherwise. A processor that is a [Positioner] and
// no [Rewinder] is closed and opened again where it is taken back to its last position (rule C4a).
type Opener interface {
	Open(ctx context.Context, at Position) error
}

// ChangesAccepter is implemented by readers that refuse to continue in an input which
// changed since they read it. AcceptChanges is called before Open where the operator is
// responsible for the changes: the reader then continues behind what was read, as far as
// it can tell that this is possible (rule C15).
type ChangesAccepter interface {
	AcceptChanges()
}

// Positioner is implemented by components that can be restarted. A reader's
// Position is asked right after the last item of a chunk was read, a writer's
// after [Preparer], a processor's when it has processed the items of a commit (rule C4a); it must
// describe exactly what was delivered, processed or written so far.
type Positioner interface {
	Position() (Position, error)
}

// Marker is implemented by readers whose source can change between two attempts,
// such as a query (rule C15a). Mark is asked right after each successful Read and
// must stay valid until the next but one chunk; PositionAt turns it into the
// position after that item. A step that ends in the middle of a chunk then continues
// after that very item; without marks it continues at the chunk's start and counts,
// which is exact as long as the source is the same.
type Marker interface {
	Mark() any
	PositionAt(mark any) (Position, error)
}

// Closer is implemented by components that hold something. Close is called
// exactly once for every call of Open, also after a failure,
// with a context that is not cancelled.
type Closer interface {
	Close(ctx context.Context) error
}

// Preparer is implemented by writers whose target is outside the transaction.
// Prepare is called after Write and before the chunk's commit; when it returns,
// what was written must survive a crash (rule C15: fsync before the commit that
// covers it).
type Preparer interface {
	Prepare(ctx context.Context) error
}

// Rewinder is implemented by processors with a position, which Rewind takes back to it without Close
// and Open (rule C4a), and by writers whose target is outside the transaction and which
// can forget what was written since the last commit. Where a chunk is rolled back and
// the step continues, Rewind is called with the position of the last committed chunk
// (nil before the first) ahead of the next Write. Rows written or prepared after that
// position are gone then, as after a crash and Open at the same position. A writer
// outside the transaction that cannot rewind may show rows of a rolled-back chunk
// (rule C18).
type Rewinder interface {
	Rewind(ctx context.Context, at Position) error
}

// Releaser is implemented by writers that keep what only an earlier position
// needs, such as the file of an earlier attempt. Release is called after a commit:
// a restart gets the position that the writer returned last, and what only earlier ones
// needed may go. It is called again after later commits.
type Releaser interface {
	Release(ctx context.Context) error
}

// Warner is implemented by readers that notice what a person should know, and what stops nothing: a
// key that the item type does not have. Warnings returns what is new since its last call; it is
// called before a commit, which stores them with the step, also while the reader reads ahead.
type Warner interface {
	Warnings() []string
}

// LeftOuter is implemented by writers whose target may leave out items that it was sent, such as a
// table with a trigger that drops rows (rule C11a).
type LeftOuter interface {
	// CountLeftOut is called once, before Open, by an engine that asks LeftOut after each successful
	// Write. Without it a Write of which items are left out fails.
	CountLeftOut()
	// LeftOut returns how many items the target left out since it was asked last. They are not counted
	// as written.
	LeftOut() int64
	// LeftOutError returns the error of a step that left out n of the items that it was to write; nil
	// accepts them.
	LeftOutError(n, of int64) error
}

// Completer is implemented by writers that have something to do in the transaction of
// their target when all items are written, such as exchanging the rows of a table.
// Complete is called once all items have a verdict, before [Preparer], in the transaction
// of one more commit, which the guard of the step's owner covers (rule TW1). Where that is
// rolled back and tried again, [Rewinder] comes first. It is called again after a crash
// between that commit and the step's end: the position must tell.
type Completer interface {
	Complete(ctx context.Context) error
}

// Tally is what became of the items of a step, over all its attempts.
type Tally struct{ Read, Written, Filtered, Skipped int64 }

// Tallier is implemented by those Completers whose work depends on what became of the items: Tally is
// called before Complete. Those that could not be read are among Skipped only.
type Tallier interface {
	Tally(t Tally)
}

// PartsPreparer is implemented by writers that create their target in the transaction of their first
// items. In a partitioned step PrepareParts is called once, in a transaction before the parts are
// stored, on a writer that is made for the first part and never opened.
type PartsPreparer interface {
	PrepareParts(ctx context.Context) error
}

// Revocable is implemented by processors that leave items out for what they saw or wrote in the
// chunk's transaction, such as keys in a table. Where that is rolled back, the items that were
// left out in it are processed again (rule C15g); those of other processors are not.
type Revocable interface {
	Revocable()
}

// Independent is implemented by readers and processors whose outcomes do not depend on what
// their step writes: the next chunk may be read and processed while this one is written, and
// be thrown away (rule C20). They are then called on another goroutine than the writer, one
// call at a time. A processor that says so has no effect besides its output.
type Independent interface {
	// IndependentOf reports whether nothing that the step writes into files, or into the
	// named database, changes an outcome. It is asked after Open.
	IndependentOf(database string) bool
}

// IsIndependent reports whether a component says that it is Independent of a database.
func IsIndependent(component any, database string) bool {
	i, ok := component.(Independent)
	return ok && i.IndependentOf(database)
}

// Finisher is implemented by writers and processors that have something to do once all items
// are committed and before the step is COMPLETED, such as renaming a file into
// view. Before it the engine commits once more, with Prepare, Position and
// Release: so the attempt still owned its step, and the stored position is the
// writer's last (rule C15b). It may be called again after a crash, so it must be
// idempotent.
type Finisher interface {
	Finish(ctx context.Context) error
}

// Publisher is implemented by those Finishers that may have nothing to publish: a writer made of
// other writers asks them.
type Publisher interface{ Publishes() bool }

// Publishes reports whether a component publishes its output when its step completes: a Finisher
// does, unless it is a Publisher that says no.
func Publishes(component any) bool {
	if p, ok := component.(Publisher); ok {
		return p.Publishes()
	}
	_, ok := component.(Finisher)
	return ok
}

// Meta is where an item came from: `meta.line`, `meta.path`, `meta.index` and `meta.row` of
// expressions.
type Meta struct {
	// Path is the file or table read; empty if unknown.
	Path string
	// Line is the 1-based line (files) or ordinal (queries) of the item; 0 if unknown.
	Line int64
	// Index is the 1-based number of the element that the item is, or is part of, where the
	// source is an array; 0 where there is none.
	Index int64
	// Row is the 1-based number of the item among those that one element, or one line,
	// became; 0 where each becomes one.
	Row int64
}

// String returns "path:line, element INDEX, row ROW", or what is known of it.
func (m Meta) String() string {
	place := m.Path
	if m.Line != 0 {
		if place += ":"; m.Path == "" {
			place = "line "
		}
		place += strconv.FormatInt(m.Line, 10)
	}
	for _, of := range []struct {
		name   string
		number int64
	}{{"element ", m.Index}, {"row ", m.Row}} {
		if of.number == 0 {
			continue
		}
		if place != "" {
			place += ", "
		}
		place += of.name + strconv.FormatInt(of.number, 10)
	}
	return place
}

// MetaReader is implemented by readers that know where an item came from. Meta
// is asked right after a successful Read.
type MetaReader interface {
	Meta() Meta
}

// MetaProcessor is implemented by processors that want to know where their item
// came from: ProcessMeta is called instead of Process.
type MetaProcessor[I, O any] interface {
	ProcessMeta(ctx context.Context, item I, meta Meta) (O, error)
}

// MaxPayloadBytes bounds the JSON of a stored skipped item (rule C12).
const MaxPayloadBytes = 64 << 10

// Skipper is implemented by readers whose failed Read consumes nothing and
// which can step over the item it was about. A reader whose error is neither a
// ConsumedError nor skippable in this way makes its step fail.
type Skipper interface {
	SkipItem(ctx context.Context) error
}
