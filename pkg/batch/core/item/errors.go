package item

import "errors"

// ErrFilter is the error of an ItemProcessor that leaves the item out.
var ErrFilter = errors.New("item filtered")

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

// Error returns the item's origin and the cause, as "path:line: cause".
func (e *ConsumedError) Error() string {
	if where := e.Meta.String(); where != "" {
		return where + ": " + e.Err.Error()
	}
	return e.Err.Error()
}

// Unwrap returns the error in the item.
func (e *ConsumedError) Unwrap() error { return e.Err }

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

// RecordError is a writer's failure caused by one of its records.
type RecordError struct {
	// Index is the index of the record among the writer's records.
	Index int
	Err   error
}

// Error returns the cause: the engine adds the item's origin.
func (e *RecordError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// PlacedError is a writer's failure caused by an item of known origin.
type PlacedError struct {
	Meta Meta
	Err  error
}

// Error returns the cause: the engine adds the origin if the failure ends a step.
func (e *PlacedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PlacedError) Unwrap() error { return e.Err }

// Placed adds the item's origin to a RecordError in the chain of err; from is the number of items
// before the records.
func Placed(err error, items Items, from int) error {
	var of *RecordError
	var done *PlacedError
	if err == nil || errors.As(err, &done) || !errors.As(err, &of) || from+of.Index >= items.Len() {
		return err
	}
	return &PlacedError{Meta: items.Meta(from + of.Index), Err: err}
}
