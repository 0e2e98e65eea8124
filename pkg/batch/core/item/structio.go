package item

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/surfin-batch/surfin/internal/gofield"
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

// structPlan maps a struct's fields to a schema.
type structPlan struct {
	schema  *row.Schema
	pointer bool // T is a pointer to the struct
	elem    reflect.Type
	fields  []structField
}

type structField struct {
	index    int
	pointer  bool
	nullable bool // nil is null: a pointer, or a slice
	kind     row.Kind
	isText   bool // a type of gofield.TextKind
}

func planOf(t reflect.Type) (*structPlan, error) {
	p := &structPlan{elem: t}
	if t.Kind() == reflect.Pointer {
		p.pointer, p.elem = true, t.Elem()
	}
	if p.elem.Kind() != reflect.Struct || p.elem == reflect.TypeFor[time.Time]() {
		return nil, fmt.Errorf("it is not a struct")
	}
	var fields []row.Field
	hides := hidesFields(t)
	for i := range p.elem.NumField() {
		sf := p.elem.Field(i)
		name := gofield.Name(sf)
		if name == "" {
			continue
		}
		f := structField{index: i}
		ft := sf.Type
		if ft.Kind() == reflect.Pointer {
			f.pointer, ft = true, ft.Elem()
		}
		kind, ok := gofield.KindOf(ft)
		if !ok {
			return nil, fmt.Errorf("field %s is a %v", sf.Name, sf.Type)
		}
		f.kind, f.nullable = kind, f.pointer || ft.Kind() == reflect.Slice
		_, f.isText = gofield.TextKind(ft)
		p.fields = append(p.fields, f)
		scale, err := scaleOf(sf)
		if err != nil {
			return nil, err
		}
		fields = append(fields, row.Field{
			Name: name, Kind: kind, Scale: scale, Nullable: f.nullable, From: sf.Tag.Get("from"), Format: sf.Tag.Get("format"), Separator: sf.Tag.Get("separator"),
			Optional: sf.Tag.Get("optional") == "true", Hidden: hides,
		})
	}
	var err error
	p.schema, err = row.NewSchema(fields...)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func scaleOf(f reflect.StructField) (*int, error) {
	text, ok := f.Tag.Lookup("scale")
	if !ok {
		return nil, nil
	}
	scale, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("field %s: scale %q is not an int", f.Name, text)
	}
	return &scale, nil
}

// target returns the addressable struct of item, allocating it for pointers.
func (p *structPlan) target(item reflect.Value) reflect.Value {
	if !p.pointer {
		return item
	}
	item.Set(reflect.New(p.elem))
	return item.Elem()
}

func (p *structPlan) set(item reflect.Value, values []row.Value) error {
	s := p.target(item)
	for i, f := range p.fields {
		dst, v := s.Field(f.index), values[i]
		if v.IsNull() {
			if !f.nullable {
				return p.schema.Field(i).Check(v)
			}
			dst.SetZero()
			continue
		}
		if err := p.schema.Field(i).Check(v); err != nil {
			return err
		}
		if f.pointer {
			dst.Set(reflect.New(dst.Type().Elem()))
			dst = dst.Elem()
		}
		switch {
		case f.kind.IsList():
			if err := gofield.SetList(dst, p.schema.Field(i), v); err != nil {
				return err
			}
		case f.isText:
			gofield.SetText(dst, v)
		case !gofield.Set(dst, v):
			return gofield.Unfit(p.schema.Field(i), v, dst)
		}
	}
	return nil
}

func (p *structPlan) get(item reflect.Value, values []row.Value) error {
	if p.pointer {
		if item.IsNil() {
			return exception.InvalidItem("", exception.ClassInvalidItem, fmt.Errorf("the item is nil"))
		}
		item = item.Elem()
	}
	for i, f := range p.fields {
		src := item.Field(f.index)
		if f.pointer {
			if src.IsNil() {
				values[i] = row.Value{}
				continue
			}
			src = src.Elem()
		}
		if src.CanUint() && src.Uint() > math.MaxInt64 {
			return exception.InvalidItem("", exception.ClassInvalidItem, fmt.Errorf("field %s: %d does not fit an int", p.schema.Field(i).Name, src.Uint()))
		}
		if f.isText {
			var err error
			if values[i], err = gofield.TextValue(src, f.kind); err != nil {
				return exception.InvalidItem("", exception.ClassInvalidItem, row.FieldError(p.schema.Field(i).Name, err))
			}
			continue
		}
		values[i] = gofield.Value(src, f.kind)
	}
	return nil
}
