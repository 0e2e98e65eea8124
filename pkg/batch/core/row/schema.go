package row

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Field is one named, typed column of a schema.
type Field struct {
	// Name is the field's name in expressions and tables.
	Name string
	// Kind is the field's type.
	Kind Kind
	// Nullable means that a value may be missing.
	Nullable bool
	// From is the name in the source (a CSV header, a JSON key); Name if empty.
	From string
	// Format is the text form of a date or timestamp, in the letters of [Layout], or epoch, epoch_ms or
	// epoch_us: the number since 1970-01-01 UTC; empty means ISO 8601. For bytes it is hex or base64;
	// empty means base64.
	Format string
	// Scale is the number of digits after the point of the field's decimals: fewer are filled with
	// zeros, more are an invalid item. nil accepts any.
	Scale *int
	// DecimalSeparator and ThousandsSeparator are the separators in the text of a decimal, a float or
	// an int; empty means "." and none. A text may lack the thousands separator; it is not written.
	DecimalSeparator, ThousandsSeparator string
	// TrailingMinus allows a text such as 12.50- for a negative number. It is written as -12.50.
	TrailingMinus bool
	// Trues and Falses are additional texts of a bool for true and false, in any case of letters; the
	// first one is written.
	Trues, Falses []string
	// Separator separates the elements of a list in a text; empty means that the text is a JSON array.
	// Other settings for values, such as Format, apply to the elements.
	Separator string
	// Zone is the zone in which a time without an offset is read, and a Format is written; nil means
	// UTC.
	Zone *time.Location
	// Default is the value if the source has none, of the field's kind; null means no default.
	Default Value
	// Coerce is the treatment of a value that does not fit.
	Coerce Coerce
	// Nulls are the texts read as null. nil means the default: "" for every
	// kind but string and bytes, which have none.
	Nulls []string
	// Exact refuses a text that the field would not write as the same text again (see Returns), as
	// an invalid item.
	Exact bool
	// Optional lets the source lack the column or key; the value is null then, or Default.
	Optional bool
	// Hidden keeps values of the field out of errors: the item has redacted fields, and a source may
	// repeat their values elsewhere.
	Hidden bool

	layout string
	epoch  int64  // microseconds of a unit; 0 if the format counts none
	elem   *Field // of the elements of a list
}

// Source returns the field's name in its source.
func (f *Field) Source() string {
	if f.From != "" {
		return f.From
	}
	return f.Name
}

// Type returns the field's type as a job file writes it: "string", "int null".
func (f *Field) Type() string {
	if f.Nullable {
		return f.Kind.String() + " null"
	}
	return f.Kind.String()
}

// Schema is the ordered list of a row's fields. It is immutable once made.
//
// The columns of an open schema are known only when its source is opened (a CSV file without `item`):
// its fields are those known so far, and every other name is a string column until then.
type Schema struct {
	fields []Field
	index  map[string]int
	open   bool
}

// NewSchema checks the fields: names must be unique and not empty, kinds known,
// formats valid.
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
		if err := f.setElement(); err != nil {
			return nil, err
		}
		if err := f.checkMisfits(); err != nil {
			return nil, err
		}
		if f.Optional && !f.Nullable && f.Default.IsNull() {
			return nil, fmt.Errorf("field %q is optional, so its type must allow null (%s null)", f.Name, f.Kind)
		}
		if err := errors.Join(f.checkNumber(), f.checkExact(), f.checkWords()); err != nil {
			return nil, fmt.Errorf("field %q: %w", f.Name, err)
		}
		layout, err := fieldLayout(f)
		if err != nil {
			return nil, err
		}
		f.layout, f.epoch = layout, epochUnit(f.Format)
		s.index[f.Name] = i
	}
	return s, nil
}

// InZone returns the schema with the zone for timestamps, and for counted days, that have none; itself
// if the zone is UTC or nil.
func (s *Schema) InZone(zone *time.Location) *Schema {
	if zone == nil || zone == time.UTC {
		return s
	}
	fields, changed := s.Fields(), false
	for i := range fields {
		f := &fields[i]
		kind := f.Kind
		if elem, ok := kind.Elem(); ok {
			kind = elem
		}
		if f.Zone == nil && (kind == Timestamp || kind == DateKind && epochUnit(f.Format) != 0) {
			f.Zone, changed = zone, true
		}
	}
	if !changed {
		return s
	}
	zoned, err := NewSchema(fields...)
	if err != nil { // the fields were a schema before
		return s
	}
	zoned.open = s.open
	return zoned
}

// Open returns a schema with only these fields known so far.
func Open(fields ...Field) (*Schema, error) {
	s, err := NewSchema(fields...)
	if err == nil {
		s.open = true
	}
	return s, err
}

// IsOpen reports whether more columns may appear when the source is opened.
func (s *Schema) IsOpen() bool { return s.open }

// Len returns the number of fields.
func (s *Schema) Len() int { return len(s.fields) }

// Field returns field i; the caller must not change it.
func (s *Schema) Field(i int) *Field { return &s.fields[i] }

// Fields returns a copy of the fields.
func (s *Schema) Fields() []Field { return append([]Field(nil), s.fields...) }

// Index returns the position of the named field, or -1.
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

// String returns "{id: int, name: string null}", ending in "..." when open.
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

// SameShape reports whether both have the same names, kinds and nullability in the same order.
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

// Row is one item with a schema: ordered, named values. Readers return rows with their values in a
// buffer of the chunk; to keep a row beyond the call that received it, Clone it.
type Row struct {
	schema *Schema
	values []Value
}

// New returns a row over values, which it keeps; there must be one per field.
func New(schema *Schema, values []Value) Row { return Row{schema: schema, values: values} }

// Schema returns the row's schema; nil for the zero Row.
func (r Row) Schema() *Schema { return r.schema }

// Len returns the number of values.
func (r Row) Len() int { return len(r.values) }

// At returns value i.
func (r Row) At(i int) Value { return r.values[i] }

// Values returns the row's own values, for reading only.
func (r Row) Values() []Value { return r.values }

// Get returns the named value, and false if the schema has no such field.
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
