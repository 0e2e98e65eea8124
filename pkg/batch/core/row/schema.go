package row

import (
	"fmt"
	"strings"
	"time"
)

// Schema is a row's ordered fields, immutable.
//
// An open schema's columns are known when its source opens (CSV without `item`): until then every other name
// is a string.
type Schema struct {
	fields []Field
	index  map[string]int
	open   bool
}

// NewSchema checks fields: unique names, known kinds, valid formats.
func NewSchema(fields ...Field) (*Schema, error) {
	s := &Schema{fields: append([]Field(nil), fields...), index: make(map[string]int, len(fields))}
	for i := range s.fields {
		f := &s.fields[i]
		if f.Name == "" {
			return nil, fmt.Errorf("field %d has no name", i+1)
		}
		if _, twice := s.index[f.Name]; twice {
			return nil, fmt.Errorf("field %q is listed twice", f.Name)
		}
		if f.Kind == Null || int(f.Kind) >= len(kindNames) && !f.Kind.IsList() {
			return nil, fmt.Errorf("field %q has no type (allowed: %s, and list of most of them)", f.Name, strings.Join(KindNames(), ", "))
		}
		if err := prepare(f); err != nil {
			return nil, err
		}
		s.index[f.Name] = i
	}
	return s, nil
}

// InZone sets the zone of timestamps and counted days without one; itself for UTC or nil.
func (s *Schema) InZone(zone *time.Location) *Schema {
	if zone == nil || zone == time.UTC {
		return s
	}
	fields, changed := s.Fields(), false
	for i := range fields {
		f := &fields[i]
		kind, _ := f.Kind.Elem()
		if f.Zone == nil && (kind == Timestamp || kind == DateKind && epochUnit(f.Format) != 0) {
			f.Zone, changed = zone, true
		}
	}
	if !changed {
		return s
	}
	zoned, err := NewSchema(fields...)
	if err != nil {
		return s
	}
	zoned.open = s.open
	return zoned
}

// Open returns a schema with these fields so far.
func Open(fields ...Field) (*Schema, error) {
	s, err := NewSchema(fields...)
	if err == nil {
		s.open = true
	}
	return s, err
}

// IsOpen reports whether more columns may appear.
func (s *Schema) IsOpen() bool { return s.open }

// Len returns the number of fields.
func (s *Schema) Len() int { return len(s.fields) }

// Field i must not be changed.
func (s *Schema) Field(i int) *Field { return &s.fields[i] }

// Fields returns a copy of the fields.
func (s *Schema) Fields() []Field { return append([]Field(nil), s.fields...) }

// Index of the field, or -1.
func (s *Schema) Index(name string) int {
	if i, ok := s.index[name]; ok {
		return i
	}
	return -1
}

// Names returns the field names in order.
func (s *Schema) Names() []string {
	names := make([]string, len(s.fields))
	for i := range s.fields {
		names[i] = s.fields[i].Name
	}
	return names
}

// String is "{id: int, name: string null}", with "..." when open.
func (s *Schema) String() string {
	parts := make([]string, 0, len(s.fields)+1)
	for i := range s.fields {
		parts = append(parts, s.fields[i].Name+": "+s.fields[i].Type())
	}
	if s.open {
		parts = append(parts, "...")
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// SameShape reports whether names, kinds and nullability are the same, in order.
func (s *Schema) SameShape(o *Schema) bool {
	if s == o {
		return true
	}
	if s == nil || o == nil || len(s.fields) != len(o.fields) || s.open != o.open {
		return false
	}
	for i := range s.fields {
		a, b := &s.fields[i], &o.fields[i]
		if a.Name != b.Name || a.Kind != b.Kind || a.Nullable != b.Nullable {
			return false
		}
	}
	return true
}

// Row is an item's ordered, named values. Readers use a chunk's buffer: Clone a row to keep it beyond the
// call.
type Row struct {
	schema *Schema
	values []Value
}

// New keeps values; one per field.
func New(schema *Schema, values []Value) Row { return Row{schema: schema, values: values} }

// Schema is nil for the zero Row.
func (r Row) Schema() *Schema { return r.schema }

// Len returns the number of values.
func (r Row) Len() int { return len(r.values) }

// At returns value i.
func (r Row) At(i int) Value { return r.values[i] }

// Values are for reading only.
func (r Row) Values() []Value { return r.values }

// Get is false without such a field.
func (r Row) Get(name string) (Value, bool) {
	if r.schema == nil {
		return Value{}, false
	}
	i := r.schema.Index(name)
	if i < 0 {
		return Value{}, false
	}
	return r.values[i], true
}

// Clone returns a row that owns its values.
func (r Row) Clone() Row { return Row{schema: r.schema, values: append([]Value(nil), r.values...)} }
