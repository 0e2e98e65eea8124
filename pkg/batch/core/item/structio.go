package item

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// structReader is a Reader of structs over a reader of records.
type structReader[T any] struct {
	plan   *structPlan
	r      RecordReader
	meta   MetaReader
	mark   Marker
	values []row.Value
}

func newStructReader[T any](plan *structPlan, r RecordReader) *structReader[T] {
	s := &structReader[T]{plan: plan, r: r, mark: markerOf(componentOf(r)), values: make([]row.Value, plan.schema.Len())}
	s.meta, _ = r.(MetaReader)
	return s
}

func (s *structReader[T]) NewItems(capacity int) Items { return NewSlice[T](capacity) }
func (s *structReader[T]) Component() any              { return componentOf(s.r) }

// Fill sets the structs in place: a separate struct, copied into the slice later, would be allocated
// for each.
func (s *structReader[T]) Fill(ctx context.Context, items Items, n int) error {
	list, err := sliceOf[T]("reader", items)
	if err != nil {
		return err
	}
	for at := len(list.Items); at < n; at++ {
		if err := s.r.ReadRecord(ctx, s.values); err != nil {
			return err
		}
		var empty T
		if s.meta == nil {
			list.Items = append(list.Items, empty)
		} else {
			list.Append(empty, s.meta.Meta())
		}
		if err := s.plan.set(reflect.ValueOf(&list.Items[at]).Elem(), s.values); err != nil {
			list.Truncate(at)
			return Consumed(metaOf(s.r), err)
		}
		if s.mark != nil {
			list.Marks = append(list.Marks, s.mark.Mark())
		}
	}
	return nil
}

// structWriter is a Writer of structs over a writer of records.
type structWriter[T any] struct {
	plan   *structPlan
	w      RecordWriter
	buffer recordBuffer
}

func (s *structWriter[T]) Component() any { return componentOf(s.w) }

func (s *structWriter[T]) Write(ctx context.Context, items Items) error {
	list, err := sliceOf[T]("writer", items)
	if err != nil {
		return err
	}
	records, err := recordsOf(&s.buffer, s.plan, list.Items)
	if err != nil {
		return err
	}
	return Placed(s.w.WriteRecords(ctx, s.plan.schema, records), items, 0)
}

// NewEncoding implements Encoder.
func (s *structWriter[T]) NewEncoding() Encoding {
	var buffer recordBuffer
	return newRecordEncoding(s.w, func(items Items) (*row.Schema, [][]row.Value, error) {
		list, err := sliceOf[T]("writer", items)
		if err != nil {
			return nil, nil, err
		}
		records, err := recordsOf(&buffer, s.plan, list.Items)
		return s.plan.schema, records, err
	})
}

func (s *structWriter[T]) WriteEncoded(ctx context.Context, encoded Encoding) (bool, error) {
	return writeRecordEncoding(ctx, s.w, encoded)
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

// recordBuffer holds structs as records.
type recordBuffer struct {
	values  []row.Value
	records [][]row.Value
}

func recordsOf[T any](b *recordBuffer, plan *structPlan, items []T) ([][]row.Value, error) {
	width := plan.schema.Len()
	if need := width * len(items); cap(b.values) < need {
		b.values = make([]row.Value, need)
	}
	b.records = b.records[:0]
	for i := range items {
		record := b.values[i*width : (i+1)*width : (i+1)*width]
		if err := plan.get(reflect.ValueOf(&items[i]).Elem(), record); err != nil {
			return nil, err
		}
		b.records = append(b.records, record)
	}
	return b.records, nil
}

type documentWriter[T any] struct{ w DocumentWriter }

func (d *documentWriter[T]) Write(ctx context.Context, items []T) error {
	docs := make([][]byte, len(items))
	for i := range items {
		doc, err := json.Marshal(items[i])
		if err != nil {
			return exception.InvalidItem("", exception.ClassInvalidItem, err)
		}
		docs[i] = plainNumbers(doc)
	}
	return d.w.WriteDocuments(ctx, docs)
}
