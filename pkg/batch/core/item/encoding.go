package item

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// recordEncoding is the encoding of a writer of records.
type recordEncoding struct {
	inner RecordEncoding
	// records returns the items as records of one schema.
	records func(items Items) (*row.Schema, [][]row.Value, error)
}

// errShapes means that the items of a chunk have different fields.
var errShapes = errors.New("the rows differ in their fields")

func (e *recordEncoding) Encode(items Items) error {
	schema, records, err := e.records(items)
	if err != nil {
		return err
	}
	return e.inner.EncodeRecords(schema, records)
}

// newRecordEncoding returns the encoding of a writer over w, or nil if w has none.
func newRecordEncoding(w RecordWriter, records func(items Items) (*row.Schema, [][]row.Value, error)) Encoding {
	encoder, ok := w.(recordEncoder)
	if !ok {
		return nil
	}
	inner := encoder.NewEncoding()
	if inner == nil {
		return nil
	}
	return &recordEncoding{inner: inner, records: records}
}

func writeRecordEncoding(ctx context.Context, w RecordWriter, e Encoding) (bool, error) {
	encoder, ok := w.(recordEncoder)
	of, is := e.(*recordEncoding)
	if !ok || !is {
		return false, fmt.Errorf("a %T cannot write a %T", w, e)
	}
	return encoder.WriteEncoded(ctx, of.inner)
}

// NewEncoding implements Encoder.
func (e *rowRecordWriter) NewEncoding() Encoding {
	var records [][]row.Value
	return newRecordEncoding(e.w, func(items Items) (*row.Schema, [][]row.Value, error) {
		s, err := sliceOf[Row]("writer", items)
		if err != nil || len(s.Items) == 0 {
			return nil, nil, errors.Join(err, errShapes)
		}
		var schema *row.Schema
		schema, records = sameSchema(s.Items, records[:0])
		if len(records) < len(s.Items) {
			return nil, nil, errShapes
		}
		return schema, records, nil
	})
}

func (e *rowRecordWriter) WriteEncoded(ctx context.Context, encoded Encoding) (bool, error) {
	return writeRecordEncoding(ctx, e.w, encoded)
}

// sameSchema appends the values of the leading rows that have the schema of the first.
func sameSchema(rows []Row, records [][]row.Value) (*row.Schema, [][]row.Value) {
	schema := rows[0].Schema()
	for _, r := range rows {
		if r.Schema() != schema {
			break
		}
		records = append(records, r.Values())
	}
	return schema, records
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

// NewEncoding implements recordEncoder: the documents are made separately from their file.
func (d *recordDocuments) NewEncoding() RecordEncoding { return &documentsEncoding{} }

func (d *recordDocuments) WriteEncoded(ctx context.Context, of RecordEncoding) (bool, error) {
	e, ok := of.(*documentsEncoding)
	if !ok {
		return false, fmt.Errorf("a %T is not an encoding of documents", of)
	}
	return true, d.WriteDocuments(ctx, e.docs)
}
