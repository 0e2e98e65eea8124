package item

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// RecordReader reads records: one value per field of its schema.
type RecordReader interface {
	// Schema is called after Open. It has the fields of the item type it was made for; for an open
	// schema, the columns found in the source.
	Schema() *row.Schema
	// ReadRecord fills dst, which has one element per field. io.EOF at the end; the contract of
	// ItemReader.Read holds, including ConsumedError.
	ReadRecord(ctx context.Context, dst []row.Value) error
}

// RecordWriter writes records.
type RecordWriter interface {
	// WriteRecords writes records of one schema; they are void when it returns.
	WriteRecords(ctx context.Context, schema *row.Schema, records [][]row.Value) error
}

// recordEncoder is implemented by record writers that can encode records separately from sending them;
// see [Encoder].
type recordEncoder interface {
	NewEncoding() RecordEncoding
	WriteEncoded(ctx context.Context, e RecordEncoding) (done bool, err error)
}

// RecordEncoding holds the encoded records of one chunk; see [Encoding]. The records stay unchanged
// until they are written.
type RecordEncoding interface {
	EncodeRecords(schema *row.Schema, records [][]row.Value) error
}

// recordLocator is implemented by record writers that can find the record that made WriteRecords fail; see
// [Locator].
type recordLocator interface {
	LocateRecord(ctx context.Context, schema *row.Schema, records [][]row.Value, failure error) (index int, found bool)
}

// DocumentReader reads JSON documents.
type DocumentReader interface {
	// ReadDocument returns one JSON value, void at the next call; io.EOF at the
	// end. A document that does not fit the item type is consumed (ConsumedError).
	ReadDocument(ctx context.Context) ([]byte, error)
}

// DocumentWriter writes JSON documents.
type DocumentWriter interface {
	// WriteDocuments writes one JSON value each; they are void when it returns.
	WriteDocuments(ctx context.Context, docs [][]byte) error
}

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
