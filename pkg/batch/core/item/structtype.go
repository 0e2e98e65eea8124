package item

import (
	"fmt"
	"reflect"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// TypeOf returns the item type of a Go type. For a struct the schema is derived from its exported
// fields: the field's name in lower snake case, or the tag `batch:"name"` (`batch:"-"` leaves it out);
// `from:"Header"` names it in the source, `format:"yyyyMMdd"` gives the text form of dates and times.
// Fields may be of any string, int, uint, float or bool kind, row.Date, time.Time, row.Decimal,
// row.JSON or json.RawMessage, a slice of bytes, an array of 16 bytes (a uuid), or a pointer to one of
// these, which is nullable, as a slice is. A slice of simple values is a list; its `separator:";"`
// separates the elements in a text. `scale:"2"` is the scale of a decimal. A struct with other fields,
// and any other type, has no schema: jsonl and json still serve it through encoding/json.
func TypeOf[T any](name string) Type {
	t := &structType[T]{name: name}
	if name == "" {
		t.name = reflect.TypeFor[T]().String()
	}
	if t.GoType() == reflect.TypeFor[Row]() {
		open, err := row.Open()
		if err != nil { // only a field can be wrong, and there is none
			panic(fmt.Sprintf("core: open row: %v", err))
		}
		return rowType{name: "row", schema: open}
	}
	t.plan, t.why = planOf(reflect.TypeFor[T]())
	return t
}

type structType[T any] struct {
	name string
	plan *structPlan // nil means no record form
	why  error
	zone *time.Location // of times without an offset; nil means UTC
}

// InZone returns the type with the time zone in which it reads timestamps without an offset, and writes
// a format, unless specified otherwise (rule D5).
func InZone(t Type, zone *time.Location) Type {
	if z, ok := t.(interface{ inZone(*time.Location) Type }); ok && zone != nil && zone != time.UTC {
		return z.inZone(zone)
	}
	return t
}

func (t *structType[T]) inZone(zone *time.Location) Type {
	zoned := *t
	zoned.zone = zone
	if t.plan != nil {
		plan := *t.plan
		plan.schema = plan.schema.InZone(zone)
		zoned.plan = &plan
	}
	return &zoned
}

func (t *structType[T]) Name() string         { return t.name }
func (t *structType[T]) GoType() reflect.Type { return reflect.TypeFor[T]() }

func (t *structType[T]) NewCell() any                { return new(Cell[T]) }
func (t *structType[T]) NewItems(capacity int) Items { return NewSlice[T](capacity) }

func (t *structType[T]) Schema() *row.Schema {
	if t.plan == nil {
		return nil
	}
	return t.plan.schema
}

func (t *structType[T]) FromRecords(r RecordReader) (Reader, error) {
	if t.plan == nil {
		return nil, fmt.Errorf("type %s has no record form: %w", t.name, t.why)
	}
	return newStructReader[T](t.plan, r), nil
}

func (t *structType[T]) ToRecords(w RecordWriter) (Writer, error) {
	if t.plan == nil {
		return nil, fmt.Errorf("type %s has no record form: %w", t.name, t.why)
	}
	return &structWriter[T]{plan: t.plan, w: w}, nil
}

func (t *structType[T]) FromDocuments(r DocumentReader) (Reader, error) {
	d := newDocumentReader[T](r, t.zone)
	return wrapReader(EraseReader[T](d), r), nil
}

func (t *structType[T]) ToDocuments(w DocumentWriter) (Writer, error) {
	return wrapWriter(EraseWriter[T](&documentWriter[T]{w: w}), w), nil
}

// wrappedReader returns the family's own value as Component, so that its Open, Position and Close are
// found.
type wrappedReader struct {
	Reader
	component any
}

func (w wrappedReader) Component() any { return w.component }

func wrapReader(r Reader, component any) Reader { return wrappedReader{r, componentOf(component)} }

type wrappedWriter struct {
	Writer
	component any
}

func (w wrappedWriter) Component() any { return w.component }

func wrapWriter(w Writer, component any) Writer { return wrappedWriter{w, componentOf(component)} }
