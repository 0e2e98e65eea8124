package item

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Row is the item type of YAML jobs.
type Row = row.Row

// Type is the type of items between two stages: a Go type and the schema for shipped readers and writers.
// [TypeOf] and [RowOf] make one.
//
// The shipped families move records or JSON documents, which the type turns into items without boxing.
type Type interface {
	// Name is for messages.
	Name() string
	GoType() reflect.Type
	// Schema is nil without a record form (not a struct).
	Schema() *row.Schema
	// NewCell is an empty *Cell, NewItems an empty buffer, for processors of every type.
	NewCell() any
	NewItems(capacity int) Items
	// FromRecords reads items from records.
	FromRecords(r RecordReader) (Reader, error)
	// ToRecords writes items as records.
	ToRecords(w RecordWriter) (Writer, error)
	// FromDocuments reads items from JSON documents.
	FromDocuments(r DocumentReader) (Reader, error)
	// ToDocuments writes items as JSON documents.
	ToDocuments(w DocumentWriter) (Writer, error)
}

// RecordReader reads one value per schema field.
type RecordReader interface {
	// Schema is called after Open: the item type's fields; for an open schema, the source's columns.
	Schema() *row.Schema
	// ReadRecord fills dst, one element per field; io.EOF and ConsumedError as in ItemReader.Read.
	ReadRecord(ctx context.Context, dst []row.Value) error
}

// RecordWriter writes records.
type RecordWriter interface {
	// WriteRecords gets one schema; records are void on return.
	WriteRecords(ctx context.Context, schema *row.Schema, records [][]row.Value) error
}

// RecordEncoder writers encode separately from sending; see [Encoder].
type RecordEncoder interface {
	NewEncoding() RecordEncoding
	WriteEncoded(ctx context.Context, e RecordEncoding) (done bool, err error)
}

// RecordEncoding is a chunk's; see [Encoding]. Records stay unchanged until written.
type RecordEncoding interface {
	EncodeRecords(schema *row.Schema, records [][]row.Value) error
}

// DocumentReader reads JSON documents.
type DocumentReader interface {
	// ReadDocument returns one JSON value, void at the next call; io.EOF at the end. A misfit is a
	// ConsumedError.
	ReadDocument(ctx context.Context) ([]byte, error)
}

// DocumentWriter writes JSON documents.
type DocumentWriter interface {
	// WriteDocuments writes JSON values, void on return.
	WriteDocuments(ctx context.Context, docs [][]byte) error
}

// Assignable says why from cannot be passed to a stage of to; nil if it can.
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

// RowOf is the type of rows; name is for messages, empty means "row".
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

type rowItems struct {
	Slice[Row]
	blocks [][]row.Value
	used   int
	expect int
}

// Void after Reset.
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

// Reset frees the blocks.
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
	component any // nil means w
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

func componentOf(c any) any {
	if w, ok := c.(interface{ Component() any }); ok {
		return w.Component()
	}
	return c
}

// AnyCell is a *Cell of an unnamed type, for processors of every type (filter, validate). Methods concern the
// current item.
type AnyCell interface {
	// Value is the item's location, the same for the chain: call once, read only.
	Value() reflect.Value
	// Origin is the item's.
	Origin() Meta
}

// Value is the item's location.
func (c *Cell[T]) Value() reflect.Value { return reflect.ValueOf(&c.Item).Elem() }

// Origin is Meta.
func (c *Cell[T]) Origin() Meta { return c.Meta }

func (t rowType) NewCell() any                { return new(Cell[Row]) }
func (t rowType) NewItems(capacity int) Items { return NewSlice[Row](capacity) }
