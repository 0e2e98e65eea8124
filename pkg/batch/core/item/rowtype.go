package item

import (
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
