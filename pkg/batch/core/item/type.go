package item

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Row is the built-in item type of jobs written in YAML alone.
type Row = row.Row

// Type is the type of the items between two stages of a chunk step: a Go type, and the schema by which
// the shipped readers and writers see its fields. [TypeOf] makes one for a Go type, [RowOf] one for
// rows of a schema.
//
// The shipped families (csv, jsonl, json, table, query) are not generic: they move records of row
// values, or JSON documents, and the item type turns them into items without boxing.
type Type interface {
	// Name is the type's name in messages.
	Name() string
	GoType() reflect.Type
	// Schema is nil if the Go type has no record form (it is not a struct).
	Schema() *row.Schema
	// NewCell returns an empty *Cell of the type, NewItems an empty buffer: for processors that serve
	// items of every type.
	NewCell() any
	NewItems(capacity int) Items
	// FromRecords makes a reader of items over a reader of records.
	FromRecords(r RecordReader) (Reader, error)
	// ToRecords makes a writer of items over a writer of records.
	ToRecords(w RecordWriter) (Writer, error)
	// FromDocuments makes a reader of items over a reader of JSON documents.
	FromDocuments(r DocumentReader) (Reader, error)
	// ToDocuments makes a writer of items over a writer of JSON documents.
	ToDocuments(w DocumentWriter) (Writer, error)
}

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

// Assignable reports why items of type from cannot be passed to a stage that takes type to; nil if they
// can.
func Assignable(from, to Type) error {
	if from.GoType() != to.GoType() {
		text := fmt.Sprintf("it takes %s, but receives %s", to.Name(), from.Name())
		if from.GoType() == reflect.TypeFor[Row]() {
			text += ", which are rows: let the Go component take batch.Row, or let the reader return a registered Go type (item: NAME)"
		}
		return errors.New(text)
	}
	a, b := from.Schema(), to.Schema()
	if from.GoType() != reflect.TypeFor[Row]() || a == nil || b == nil || a.IsOpen() || b.IsOpen() || a.SameShape(b) {
		return nil
	}
	return fmt.Errorf("it takes rows %s, but receives rows %s", b, a)
}

// RowOf returns the item type of rows with the schema. name is for messages; empty means "row".
func RowOf(name string, schema *row.Schema) Type {
	if name == "" {
		name = "row"
	}
	return rowType{name: name, schema: schema}
}

type rowType struct {
	name   string
	schema *row.Schema
}

func (t rowType) Name() string         { return t.name + " " + t.schema.String() }
func (t rowType) GoType() reflect.Type { return reflect.TypeFor[Row]() }
func (t rowType) Schema() *row.Schema  { return t.schema }

func (t rowType) FromRecords(r RecordReader) (Reader, error) {
	e := &rowRecordReader{r: r, mark: markerOf(componentOf(r))}
	e.meta, _ = r.(MetaReader)
	return e, nil
}

func (t rowType) ToRecords(w RecordWriter) (Writer, error) { return &rowRecordWriter{w: w}, nil }

func (t rowType) FromDocuments(r DocumentReader) (Reader, error) {
	return t.FromRecords(newDocumentRecords(r, t.schema))
}

func (t rowType) ToDocuments(w DocumentWriter) (Writer, error) {
	return &rowRecordWriter{w: &recordDocuments{DocumentWriter: w}, component: w}, nil
}

// rowItems are rows with their values in blocks that are reused chunk by chunk.
type rowItems struct {
	Slice[Row]
	blocks [][]row.Value
	used   int // blocks in use
	expect int // expected number of items
}

// take returns room for n values that is void after Reset.
func (s *rowItems) take(n int) []row.Value {
	if s.used > 0 {
		last := &s.blocks[s.used-1]
		if cap(*last)-len(*last) >= n {
			from := len(*last)
			*last = (*last)[: from+n : cap(*last)]
			return (*last)[from : from+n : from+n]
		}
	}
	const maxValues = 4096
	if s.used == len(s.blocks) {
		s.blocks = append(s.blocks, make([]row.Value, 0, max(n, min(maxValues, s.expect*n))))
	} else if cap(s.blocks[s.used]) < n {
		s.blocks[s.used] = make([]row.Value, 0, n)
	}
	s.used++
	return s.take(n)
}

func (s *rowItems) giveBack(n int) {
	last := &s.blocks[s.used-1]
	clear((*last)[len(*last)-n:])
	*last = (*last)[:len(*last)-n]
}

// Reset empties s and frees its blocks.
func (s *rowItems) Reset() {
	s.Slice.Reset()
	for i := range s.blocks {
		clear(s.blocks[i])
		s.blocks[i] = s.blocks[i][:0]
	}
	s.used = 0
}

type rowRecordReader struct {
	r    RecordReader
	meta MetaReader
	mark Marker
}

func (e *rowRecordReader) NewItems(capacity int) Items {
	return &rowItems{Slice: Slice[Row]{Items: make([]Row, 0, capacity)}, expect: capacity}
}

func (e *rowRecordReader) Component() any { return componentOf(e.r) }

func (e *rowRecordReader) Fill(ctx context.Context, items Items, n int) error {
	s := items.(*rowItems)
	schema := e.r.Schema()
	width := schema.Len()
	for len(s.Items) < n {
		values := s.take(width)
		if err := e.r.ReadRecord(ctx, values); err != nil {
			s.giveBack(width)
			return err
		}
		if e.meta == nil {
			s.Items = append(s.Items, row.New(schema, values))
		} else {
			s.Append(row.New(schema, values), e.meta.Meta())
		}
		if e.mark != nil {
			s.Marks = append(s.Marks, e.mark.Mark())
		}
	}
	return nil
}

type rowRecordWriter struct {
	w         RecordWriter
	component any // the result of Component; nil means w
	records   [][]row.Value
}

func (e *rowRecordWriter) Component() any {
	if e.component != nil {
		return e.component
	}
	return componentOf(e.w)
}

func (e *rowRecordWriter) Write(ctx context.Context, items Items) error {
	s, err := sliceOf[Row]("writer", items)
	if err != nil {
		return err
	}
	rows := s.Items
	for len(rows) > 0 {
		var schema *row.Schema
		schema, e.records = sameSchema(rows, e.records[:0])
		if err := e.w.WriteRecords(ctx, schema, e.records); err != nil {
			return Placed(err, items, len(s.Items)-len(rows))
		}
		rows = rows[len(e.records):]
	}
	return nil
}

// componentOf unwraps adaptors that stand between an item type and a family.
func componentOf(c any) any {
	if w, ok := c.(interface{ Component() any }); ok {
		return w.Component()
	}
	return c
}

// AnyCell is a *Cell of a type that the caller cannot name. Processors of items of every type (filter,
// validate) read the cell of their chain through it. Both methods concern the item currently in the
// cell.
type AnyCell interface {
	// Value returns the item's location in the cell. It is the same for all items of the chain, so it
	// is called once, and is for reading only.
	Value() reflect.Value
	// Origin returns the origin of the item.
	Origin() Meta
}

// Value returns the location of the item.
func (c *Cell[T]) Value() reflect.Value { return reflect.ValueOf(&c.Item).Elem() }

// Origin returns Meta.
func (c *Cell[T]) Origin() Meta { return c.Meta }

func (t rowType) NewCell() any                { return new(Cell[Row]) }
func (t rowType) NewItems(capacity int) Items { return NewSlice[Row](capacity) }
