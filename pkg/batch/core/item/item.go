package item

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
)

// ItemReader delivers a chunk step's items.
//
// Read returns io.EOF after the last item, and ever after. Its error should say whether the item is used up:
// after a [ConsumedError] the next Read returns the following item, after [NotConsumed] the same. Otherwise
// the item counts as consumed if the error skips, and is read again only if Position has not changed (rule
// C1b). [Skipper] and [Rereader] need no NotConsumed. One goroutine at a time calls it, not always the same.
// Items belong to the engine.
//
// Optional, checked once at the start: [Opener], [ChangesAccepter], [Positioner], [Marker], [Closer],
// [Skipper], [MetaReader], [RawReader], [RawOpener].
type ItemReader[T any] interface {
	Read(ctx context.Context) (T, error)
}

// ConsumedError means that the failed Read consumed its item (rule C1), and the next Read returns the
// following one. It is an outcome: it may be skipped and counts for the position (rule C15a); a second Read
// would lose an item.
//
// Err alone decides about retry and skip.
type ConsumedError struct {
	// Meta is the item's origin; zero if unknown.
	Meta Meta
	Err  error
}

// Consumed wraps the error of a Read that consumed its item; a marked error keeps its data.
func Consumed(meta Meta, err error) error {
	if IsConsumed(err) {
		return err
	}
	return &ConsumedError{Meta: meta, Err: err}
}

// IsConsumed reports whether the failed Read consumed its item.
func IsConsumed(err error) bool {
	var c *ConsumedError
	return errors.As(err, &c)
}

// NotConsumed wraps the error of a Read that consumed nothing: the next Read returns the same item.
func NotConsumed(err error) error {
	if IsConsumed(err) || IsNotConsumed(err) {
		return err
	}
	return &notConsumedError{err}
}

// IsNotConsumed reports whether err is marked so.
func IsNotConsumed(err error) bool {
	var c *notConsumedError
	return errors.As(err, &c)
}

type notConsumedError struct{ err error }

func (e *notConsumedError) Error() string { return e.err.Error() }
func (e *notConsumedError) Unwrap() error { return e.err }

// Rereader readers consume nothing in a failed Read, except with a [ConsumedError]: a retry need not compare
// Positions (rule C1b).
type Rereader interface {
	Rereads()
}

// Error is "path:line: cause".
func (e *ConsumedError) Error() string {
	if where := e.Meta.String(); where != "" {
		return where + ": " + e.Err.Error()
	}
	return e.Err.Error()
}

// Unwrap returns the error in the item.
func (e *ConsumedError) Unwrap() error { return e.Err }

// ItemProcessor turns one item into another.
//
// It returns an item, [ErrFilter] (left out, counted once), or an error. With `concurrency` above 1 several
// goroutines call it. It must not change a pointer item in place: it may be processed again (rule C4).
//
// Optional: [Opener], [Positioner], [Rewinder], [Closer], [MetaProcessor], [Revocable], [Independent],
// [Finisher]. One with state from item to item implements Positioner and Opener: the engine restores the state
// when items are processed again, without skipped ones (rule C4a).
type ItemProcessor[I, O any] interface {
	Process(ctx context.Context, item I) (O, error)
}

// ErrFilter leaves an item out.
var ErrFilter = errors.New("item filtered")

// ItemWriter writes a chunk's items in order, in ctx's transaction if any (package tx).
//
// Slice and items belong to the engine and are reused after Write: copy those you keep (rule C4). After a
// rollback Write gets the same items again.
//
// Optional: [Opener], [Positioner], [Closer], [Completer], [Preparer], [Rewinder], [Releaser], [Finisher].
type ItemWriter[T any] interface {
	Write(ctx context.Context, items []T) error
}

// Position is a stream's: small JSON, opaque to the engine, nil at the start, stored per chunk (at most 8 KB,
// rule D4).
type Position []byte

// JSON is null without a position.
func (p Position) JSON() json.RawMessage {
	if len(p) == 0 {
		return json.RawMessage("null")
	}
	return json.RawMessage(p)
}

// Opener components acquire something at the start. Open is called once, before the first item, with the last
// committed position on a restart, else nil. A processor that is a [Positioner] but not a [Rewinder] is closed
// and opened again to restore a position (rule C4a).
type Opener interface {
	Open(ctx context.Context, at Position) error
}

// ChangesAccepter readers refuse a changed input. AcceptChanges is called before Open if the operator accepts
// the changes: the reader continues after the last read item, if it can tell that this is possible (rule C15).
type ChangesAccepter interface {
	AcceptChanges()
}

// Positioner components can be restarted. Position is called right after a chunk's last read, for a writer
// after [Preparer], for a processor after a commit's items (rule C4a); it must describe exactly the items so
// far.
type Positioner interface {
	Position() (Position, error)
}

// Marker readers have a source that may change between attempts, such as a query (rule C15a). Mark follows
// each successful Read and stays valid until the next but one chunk; PositionAt makes it the position after
// that item. A step ending inside a chunk continues after that item; without marks it counts from the chunk's
// start, exact only if the source is the same.
type Marker interface {
	Mark() any
	PositionAt(mark any) (Position, error)
}

// Closer components hold resources. Close is called exactly once per Open, also after a failure, with a
// context that is not cancelled.
type Closer interface {
	Close(ctx context.Context) error
}

// Preparer writers have a target outside the transaction. Prepare is called after Write, before the commit; on
// return the items must survive a crash (rule C15: fsync).
type Preparer interface {
	Prepare(ctx context.Context) error
}

// Rewinder processors restore a position without Close and Open (rule C4a); writers outside the transaction
// undo all since the last commit. After a rollback Rewind gets the last committed position (nil before the
// first) before the next Write; later rows are gone, as after a crash and Open there. Without it rows of a
// rolled-back chunk may show (rule C18).
type Rewinder interface {
	Rewind(ctx context.Context, at Position) error
}

// Releaser writers keep data for earlier positions. Release follows a commit, and later ones: a restart gets
// the last returned position, so data for earlier ones alone may be removed.
type Releaser interface {
	Release(ctx context.Context) error
}

// Warner readers notice problems for a person. Warnings returns those since the last call, before a commit
// that stores them, also during reading ahead.
type Warner interface {
	Warnings() []string
}

// LeftOuter writers have a target that may leave out items, such as a table with a trigger (rule C11a).
type LeftOuter interface {
	// CountLeftOut is called once before Open by an engine that calls LeftOut after each Write; without it
	// such a Write fails.
	CountLeftOut()
	// LeftOut counts since the last call; not counted as written.
	LeftOut() int64
	// LeftOutError is the step's error for n left out; nil accepts them.
	LeftOutError(n, of int64) error
}

// Completer writers work in a transaction after all items, such as exchanging a table's rows. Complete is
// called once all items have a verdict, before [Preparer], in one more guarded commit (rule TW1). On a
// rollback and retry [Rewinder] comes first. After a crash between that commit and the step's end it is called
// again: the position must show it.
type Completer interface {
	Complete(ctx context.Context) error
}

// Tally counts a step's items over all attempts.
type Tally struct{ Read, Written, Filtered, Skipped int64 }

// Tallier Completers get Tally before Complete. Unreadable items count only as Skipped.
type Tallier interface {
	Tally(t Tally)
}

// PartsPreparer writers create their target with their first items. In a partitioned step PrepareParts is
// called once, in a transaction before the parts are stored, on the first part's writer, never opened.
type PartsPreparer interface {
	PrepareParts(ctx context.Context) error
}

// Revocable processors filter by the chunk's transaction, such as keys in a table: after its rollback filtered
// items are processed again (rule C15g).
type Revocable interface {
	Revocable()
}

// Independent readers and processors have outcomes that their step's writes do not change: the next chunk may
// be read and processed while this one is written, and discarded (rule C20), on another goroutine, one call at
// a time. A processor has no effect except its output.
type Independent interface {
	// IndependentOf: no write of the step to files or the named database changes an outcome. Called after
	// Open.
	IndependentOf(database string) bool
}

// IsIndependent reports whether a component declares it for a database.
func IsIndependent(component any, database string) bool {
	i, ok := component.(Independent)
	return ok && i.IndependentOf(database)
}

// Finisher writers and processors have work after all items are committed, before COMPLETED, such as a rename.
// The engine first commits once more, with Prepare, Position and Release: the attempt owned its step, and the
// stored position is the writer's last (rule C15b). Finish may be called again after a crash: it must be
// idempotent.
type Finisher interface {
	Finish(ctx context.Context) error
}

// Publisher Finishers may have nothing to publish.
type Publisher interface{ Publishes() bool }

// Publishes reports whether a component publishes: a Finisher does, unless its Publisher denies it.
func Publishes(component any) bool {
	if p, ok := component.(Publisher); ok {
		return p.Publishes()
	}
	_, ok := component.(Finisher)
	return ok
}

// Meta is an item's origin: `meta.line`, `meta.path`, `meta.index`, `meta.row`.
type Meta struct {
	// Path is the file or table, or empty.
	Path string
	// Line is the 1-based line or ordinal; 0 if unknown.
	Line int64
	// Index is the 1-based array element; 0 without an array.
	Index int64
	// Row is 1-based among an element's or line's items; 0 if each makes one.
	Row int64
}

// String is the known parts of "path:line, element INDEX, row ROW".
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

// MetaReader readers know origins. Meta follows a successful Read.
type MetaReader interface {
	Meta() Meta
}

// MetaProcessor processors need the origin: ProcessMeta replaces Process.
type MetaProcessor[I, O any] interface {
	ProcessMeta(ctx context.Context, item I, meta Meta) (O, error)
}

// MaxPayloadBytes bounds a skip's JSON (rule C12).
const MaxPayloadBytes = 64 << 10

// Skipper readers consume nothing in a failed Read and can step over the item. Without it a skippable error
// counts as a ConsumedError, unless the reader is a [Rereader] or the error is NotConsumed: then the step
// fails.
type Skipper interface {
	SkipItem(ctx context.Context) error
}
