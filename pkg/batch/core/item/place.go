package item

import (
	"context"
	"errors"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

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

// recordLocator is implemented by record writers that can find the record that made WriteRecords fail; see
// [Locator].
type recordLocator interface {
	LocateRecord(ctx context.Context, schema *row.Schema, records [][]row.Value, failure error) (index int, found bool)
}

// Locate implements Locator for rows of one schema.
func (e *rowRecordWriter) Locate(ctx context.Context, items Items, failure error) (int, bool) {
	locator, ok := e.w.(recordLocator)
	s, err := sliceOf[Row]("writer", items)
	if !ok || err != nil || len(s.Items) == 0 {
		return 0, false
	}
	schema, records := sameSchema(s.Items, nil)
	if len(records) < len(s.Items) {
		return 0, false
	}
	return locator.LocateRecord(ctx, schema, records, failure)
}

// Locate implements Locator.
func (s *structWriter[T]) Locate(ctx context.Context, items Items, failure error) (int, bool) {
	locator, ok := s.w.(recordLocator)
	list, err := sliceOf[T]("writer", items)
	if !ok || err != nil || len(list.Items) == 0 {
		return 0, false
	}
	var buffer recordBuffer
	records, err := recordsOf(&buffer, s.plan, list.Items)
	if err != nil {
		return 0, false
	}
	return locator.LocateRecord(ctx, s.plan.schema, records, failure)
}
