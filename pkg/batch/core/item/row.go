package item

import (
	"context"
	"errors"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

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

func (t rowType) Name() string                { return t.name + " " + t.schema.String() }
func (t rowType) GoType() reflect.Type        { return reflect.TypeFor[Row]() }
func (t rowType) Schema() *row.Schema         { return t.schema }
func (t rowType) NewCell() any                { return new(Cell[Row]) }
func (t rowType) NewItems(capacity int) Items { return NewSlice[Row](capacity) }

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
