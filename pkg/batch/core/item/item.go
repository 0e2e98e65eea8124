package item

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
)

// ItemReader delivers the items of a chunk step one by one.
//
// Read returns io.EOF after the last item, and on every later call. The error of a Read should say
// whether the item is used up: after a [ConsumedError] the next Read returns the following item, after
// [NotConsumed] the same item. For other errors, the engine takes an item to be consumed if the error
// skips, and reads it again only if the reader's Position has not changed (rule C1b). Readers that
// implement [Skipper] or [Rereader] need no NotConsumed. One goroutine at a time calls it, but not
// always the same one. The items belong to the engine.
//
// A reader may also implement [Opener], [Positioner], [Marker], [Closer], [Skipper], [MetaReader],
// [RawReader] and [RawOpener]; the engine checks for them once, when the step starts.
type ItemReader[T any] interface {
	Read(ctx context.Context) (T, error)
}

// ConsumedError is the error of a Read that has consumed its item (rule C1): a line that does not parse
// stays wrong on every read, so the reader steps over it, and the next Read returns the following item.
// To the engine it is an outcome like an item: it may be skipped and counts for the position (rule
// C15a), but a second Read would lose an item.
//
// Err alone decides about retry and skip.
type ConsumedError struct {
	// Meta is the origin of the item; zero if unknown.
	Meta Meta
	// Err is the error in the item, usually made by exception.InvalidItem.
	Err error
}

// Consumed wraps err, which a Read returns after it consumed its item. An error that is already marked
// keeps its data.
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

// NotConsumed wraps err, which a Read returns that has consumed nothing: the next Read returns the same
// item, so a retry loses none.
func NotConsumed(err error) error {
	if IsConsumed(err) || IsNotConsumed(err) {
		return err
	}
	return &notConsumedError{err}
}

// IsNotConsumed reports whether the Read that failed with err is marked as having consumed nothing.
func IsNotConsumed(err error) bool {
	var c *notConsumedError
	return errors.As(err, &c)
}

type notConsumedError struct{ err error }

func (e *notConsumedError) Error() string { return e.err.Error() }
func (e *notConsumedError) Unwrap() error { return e.err }

// Rereader is implemented by readers that consume nothing in a failed Read, unless its error is a
// [ConsumedError]: the engine can retry a Read without reading their Position before it (rule C1b). The
// shipped readers implement it.
type Rereader interface {
	Rereads()
}

// Error returns the item's origin and the cause, as "path:line: cause".
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
// It returns an item, [ErrFilter] (the item is left out and counted as filtered, once), or an error.
// With `concurrency` above 1 several goroutines call it. It must not change a pointer item in place:
// the item may be processed again (rule C4).
//
// A processor may also implement [Opener], [Positioner], [Rewinder], [Closer], [MetaProcessor],
// [Independent] and [Finisher]. A processor that keeps state from item to item implements
// Positioner and Opener: the engine then restores that state when items are processed again, without
// the skipped items (rule C4a).
type ItemProcessor[I, O any] interface {
	Process(ctx context.Context, item I) (O, error)
}

// ErrFilter is the error of an ItemProcessor that leaves the item out.
var ErrFilter = errors.New("item filtered")

// ItemWriter writes the items of one chunk, in order, in the chunk's transaction if ctx carries one
// (package tx).
//
// The slice and its items belong to the engine and are reused once Write returned; a writer that needs
// them longer copies them (rule C4). Write may be called more than once with the same items, after a
// rollback.
//
// A writer may also implement [Opener], [Positioner], [Closer], [Completer], [Preparer], [Rewinder],
// [Releaser] and [Finisher].
type ItemWriter[T any] interface {
	Write(ctx context.Context, items []T) error
}

// Position is the position of a stream: small JSON, opaque to the engine, nil at the start. It is
// stored with every committed chunk (at most 8 KB, rule D4).
type Position []byte

// JSON returns the position as a JSON value, null if there is none.
func (p Position) JSON() json.RawMessage {
	if len(p) == 0 {
		return json.RawMessage("null")
	}
	return json.RawMessage(p)
}

// Opener is implemented by components that acquire something when their step starts. Open is called
// once, before the first item, with the position of the last committed chunk on a restart and nil
// otherwise. A processor that is a [Positioner] but not a [Rewinder] is closed and opened again to
// restore its last position (rule C4a).
type Opener interface {
	Open(ctx context.Context, at Position) error
}

// Positioner is implemented by components that can be restarted. A reader's Position is called right
// after the last item of a chunk was read, a writer's after [Preparer], a processor's when it has
// processed the items of a commit (rule C4a); it must describe exactly the items delivered, processed
// or written so far.
type Positioner interface {
	Position() (Position, error)
}

// Marker is implemented by readers of a source that can change between two attempts, such as a query
// (rule C15a). Mark is called right after each successful Read and must stay valid until the next but
// one chunk; PositionAt turns it into the position after that item. A step that ends in the middle of a
// chunk then continues after exactly that item; without marks it continues at the chunk's start and
// counts, which is exact if the source is the same.
type Marker interface {
	Mark() any
	PositionAt(mark any) (Position, error)
}

// Closer is implemented by components that hold resources. Close is called exactly once for every call
// of Open, also after a failure, with a context that is not cancelled.
type Closer interface {
	Close(ctx context.Context) error
}

// Preparer is implemented by writers with a target outside the transaction. Prepare is called after
// Write and before the chunk's commit; when it returns, the written items must survive a crash (rule
// C15: fsync before the commit that covers it).
type Preparer interface {
	Prepare(ctx context.Context) error
}

// Rewinder is implemented by processors with a position, which Rewind restores without Close and Open
// (rule C4a), and by writers with a target outside the transaction that can undo everything written
// since the last commit. If a chunk is rolled back and the step continues, Rewind is called with the
// position of the last committed chunk (nil before the first) before the next Write. Rows written or
// prepared after that position are gone then, as after a crash and Open at the same position. A writer
// outside the transaction that cannot rewind may show rows of a rolled-back chunk (rule C18).
type Rewinder interface {
	Rewind(ctx context.Context, at Position) error
}

// Releaser is implemented by writers that keep data for an earlier position, such as the file of an
// earlier attempt. Release is called after a commit: a restart gets the position that the writer
// returned last, and data for earlier positions alone may be removed. It is called again after later
// commits.
type Releaser interface {
	Release(ctx context.Context) error
}

// Completer is implemented by writers that work in the transaction of their target after all items are
// written, such as exchanging the rows of a table. Complete is called once all items have a verdict,
// before [Preparer], in the transaction of one more commit, which the guard of the step's owner covers
// (rule TW1). If that rolls back and is retried, [Rewinder] comes first. It is called again after a
// crash between that commit and the step's end: the position must show it.
type Completer interface {
	Complete(ctx context.Context) error
}

// Independent is implemented by readers and processors with outcomes that do not depend on the writes
// of their step: the next chunk may be read and processed while this one is written, and be discarded
// (rule C20). They are then called on another goroutine than the writer, one call at a time. An
// independent processor has no effect except its output.
type Independent interface {
	// IndependentOf reports whether nothing that the step writes into files, or into the named
	// database, changes an outcome. It is called after Open.
	IndependentOf(database string) bool
}

// IsIndependent reports whether a component declares itself Independent of a database.
func IsIndependent(component any, database string) bool {
	i, ok := component.(Independent)
	return ok && i.IndependentOf(database)
}

// Finisher is implemented by writers and processors with work to do after all items are committed and
// before the step is COMPLETED, such as publishing a file by a rename. Before it the engine commits
// once more, with Prepare, Position and Release: so the attempt still owned its step, and the stored
// position is the writer's last (rule C15b). Finish may be called again after a crash, so it must be
// idempotent.
type Finisher interface {
	Finish(ctx context.Context) error
}

// publisher is implemented by Finishers that may have nothing to publish: a writer made of other
// writers asks them.
type publisher interface{ Publishes() bool }

// Publishes reports whether a component publishes its output when its step completes: a Finisher does,
// unless its publisher reports false.
func Publishes(component any) bool {
	if p, ok := component.(publisher); ok {
		return p.Publishes()
	}
	_, ok := component.(Finisher)
	return ok
}

// Meta is the origin of an item: `meta.line`, `meta.path`, `meta.index` and `meta.row` of expressions.
type Meta struct {
	// Path is the file or table read; empty if unknown.
	Path string
	// Line is the 1-based line (files) or ordinal (queries) of the item; 0 if unknown.
	Line int64
	// Index is the 1-based number of the array element that is or contains the item; 0 if the source is
	// not an array.
	Index int64
	// Row is the 1-based number of the item among those made from one element or line; 0 if each makes
	// one.
	Row int64
}

// String returns "path:line, element INDEX, row ROW", or the known parts of it.
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

// MetaReader is implemented by readers that know an item's origin. Meta is called right after a
// successful Read.
type MetaReader interface {
	Meta() Meta
}

// MetaProcessor is implemented by processors that need the origin of their item: ProcessMeta is called
// instead of Process.
type MetaProcessor[I, O any] interface {
	ProcessMeta(ctx context.Context, item I, meta Meta) (O, error)
}

// MaxPayloadBytes bounds the JSON of a stored skipped item (rule C12).
const MaxPayloadBytes = 64 << 10

// Skipper is implemented by readers that consume nothing in a failed Read and can step over the failed
// item. Without it, a skippable error counts as a ConsumedError, unless the reader is a [Rereader] or
// the error is NotConsumed: then the step fails.
type Skipper interface {
	SkipItem(ctx context.Context) error
}
