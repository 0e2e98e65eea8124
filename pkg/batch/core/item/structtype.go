package item

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// TypeOf returns the item type of a Go type. For a struct the schema is derived from its exported
// fields: the field's name in lower snake case, or the tag `batch:"name"` (`batch:"-"` leaves it out);
// `from:"Header"` names it in the source, `format:"yyyyMMdd"` gives the text form of dates and times.
// Fields may be of any string, int, uint, float or bool kind, row.Date, time.Time or row.Decimal, a
// type of [TextKind], or a pointer to one of these, which is nullable, as a slice is. A slice of simple
// values is a list; its `separator:";"` separates the elements in a text. `scale:"2"` is the scale of a
// decimal. A struct with other fields, and any other type, has no schema: jsonl and json still serve it
// through encoding/json.
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
	isText   bool // a type of TextKind
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
		name := FieldName(sf)
		if name == "" {
			continue
		}
		f := structField{index: i}
		ft := sf.Type
		if ft.Kind() == reflect.Pointer {
			f.pointer, ft = true, ft.Elem()
		}
		kind, ok := goKind(ft)
		if !ok {
			return nil, fmt.Errorf("field %s is a %v", sf.Name, sf.Type)
		}
		f.kind, f.nullable = kind, f.pointer || ft.Kind() == reflect.Slice
		_, f.isText = TextKind(ft)
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

func goKind(t reflect.Type) (row.Kind, bool) {
	switch t {
	case reflect.TypeFor[row.Date]():
		return row.DateKind, true
	case reflect.TypeFor[time.Time]():
		return row.Timestamp, true
	case reflect.TypeFor[row.Decimal]():
		return row.DecimalKind, true
	}
	if kind, ok := TextKind(t); ok {
		return kind, true
	}
	switch t.Kind() {
	case reflect.String:
		return row.String, true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return row.Int, true
	case reflect.Float32, reflect.Float64:
		return row.Float, true
	case reflect.Bool:
		return row.Bool, true
	default:
		return row.Null, false
	}
}

// FieldName returns the name of a Go struct's field in schemas and expressions: its tag `batch:"name"`,
// or its name in lower snake case; empty if it is left out (`batch:"-"`, or not exported).
func FieldName(f reflect.StructField) string {
	name := f.Tag.Get("batch")
	switch {
	case !f.IsExported() || name == "-":
		return ""
	case name == "":
		return snakeCase(f.Name)
	}
	return name
}

func snakeCase(name string) string {
	var b strings.Builder
	runes := []rune(name)
	upper := func(i int) bool { return i >= 0 && i < len(runes) && runes[i] >= 'A' && runes[i] <= 'Z' }
	for i, r := range runes {
		if upper(i) && i > 0 && (!upper(i-1) || (i+1 < len(runes) && !upper(i+1))) {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToLower(string(r)))
	}
	return b.String()
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
			if err := setList(dst, p.schema.Field(i), v); err != nil {
				return err
			}
		case f.isText:
			setText(dst, v)
		case !setField(dst, v):
			return unfit(p.schema.Field(i), v, dst)
		}
	}
	return nil
}

func unfit(f *row.Field, v row.Value, dst reflect.Value) error {
	return exception.InvalidItem("", exception.ClassParse, fmt.Errorf("field %s: %s does not fit a %v", f.Name, f.Quoted(v.String()), dst.Type()))
}

// setField reports whether the value fits. dst is addressable, like the items of a slice.
func setField(dst reflect.Value, v row.Value) bool {
	switch dst.Kind() {
	case reflect.String:
		dst.SetString(v.Str())
	case reflect.Float32, reflect.Float64:
		if dst.OverflowFloat(v.Float()) {
			return false
		}
		dst.SetFloat(v.Float())
	case reflect.Bool:
		dst.SetBool(v.Bool())
	case reflect.Struct:
		switch place := dst.Addr().Interface().(type) { // dst.Set would allocate
		case *row.Decimal:
			*place = v.Decimal()
		case *time.Time:
			*place = v.Time()
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Int() < 0 || dst.OverflowUint(uint64(v.Int())) {
			return false
		}
		dst.SetUint(uint64(v.Int()))
	default:
		n := v.Int()
		if v.Kind() == row.DateKind {
			n = int64(v.Date())
		}
		if dst.OverflowInt(n) {
			return false
		}
		dst.SetInt(n)
	}
	return true
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
			if values[i], err = TextValue(src, f.kind); err != nil {
				return exception.InvalidItem("", exception.ClassInvalidItem, row.FieldError(p.schema.Field(i).Name, err))
			}
			continue
		}
		values[i] = fieldValue(src, f.kind)
	}
	return nil
}

func fieldValue(src reflect.Value, kind row.Kind) row.Value {
	switch kind {
	case row.String:
		return row.StringValue(src.String())
	case row.Float:
		if src.Kind() == reflect.Float32 {
			return row.FloatValue(row.Real(float32(src.Float())))
		}
		return row.FloatValue(src.Float())
	case row.Bool:
		return row.BoolValue(src.Bool())
	case row.DateKind:
		return row.DateValue(row.Date(src.Int()))
	case row.Timestamp:
		return row.TimestampValue(*src.Addr().Interface().(*time.Time))
	case row.DecimalKind:
		return row.DecimalValue(*src.Addr().Interface().(*row.Decimal))
	default:
	}
	if src.CanUint() {
		return row.IntValue(int64(src.Uint()))
	}
	return row.IntValue(src.Int())
}
