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
