package row

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
