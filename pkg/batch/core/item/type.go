package item

import (
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
