package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Size limits of the data stored with an execution (rule D4).
const (
	MaxContextBytes  = 64 << 10
	MaxPositionBytes = 8 << 10
	// MaxFilesBytes is the limit of the value under FilesKey, which does not count for MaxContextBytes.
	MaxFilesBytes = 8 << 20
)

// FilesKey is the key of a step's context under which a reader keeps the list of its files. It is put
// once, when the step begins, and may be as long as MaxFilesBytes: a context is only written if it
// changed.
const FilesKey = "surfin.files"

// contextVersion is the format of a stored ExecutionContext. Newer formats are
// refused: an older binary must not misread them.
const contextVersion = 1

// ExecutionContext is a small, typed memory of a step or job that survives restarts: strings, ints,
// floats, decimals, bools, dates, timestamps and durations. An int is still an int after a round trip
// through the database. It is not safe for concurrent use.
type ExecutionContext struct {
	values map[string]contextValue
	// changed are the keys that were put or deleted since the context was made or read.
	changed map[string]bool
}

type contextValue struct {
	Type ParameterType `json:"t"`
	Text string        `json:"v"`
}

// NewExecutionContext returns an empty context.
func NewExecutionContext() *ExecutionContext { return &ExecutionContext{} }

// ParseExecutionContext reads the format of Encode; empty data is an empty context. One unreadable
// value does not affect the others: Get returns it as its text.
func ParseExecutionContext(data []byte) (*ExecutionContext, error) {
	c := NewExecutionContext()
	if len(data) == 0 {
		return c, nil
	}
	var stored struct {
		Version int                     `json:"version"`
		Values  map[string]contextValue `json:"values"`
	}
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, fmt.Errorf("execution context: %w", err)
	}
	if stored.Version > contextVersion {
		return nil, fmt.Errorf("execution context: format version %d is newer than this binary supports (%d)", stored.Version, contextVersion)
	}
	c.values = stored.Values
	return c, nil
}

// Put stores value under key. Allowed are string, int, int64, float64, bool, Date, time.Time,
// time.Duration and row.Decimal; and row.JSON, row.UUID, []byte and slices of simple values, which are
// stored as text. Anything else is an error. So are NaN, infinities and years beyond 0 to 9999, which
// could not be read again.
func (c *ExecutionContext) Put(key string, value any) error {
	p := Parameter{Value: value}
	switch v := value.(type) {
	case string:
		p.Type = TypeString
	case int:
		p.Type, p.Value = TypeInt, int64(v)
	case int64:
		p.Type = TypeInt
	case float64:
		p.Type = TypeFloat
	case row.Decimal:
		p.Type = TypeDecimal
	case bool:
		p.Type = TypeBool
	case row.Date:
		p.Type = TypeDate
	case time.Time:
		p.Type = TypeTimestamp
	case time.Duration:
		p.Type = TypeDuration
	default:
		if of, err := row.ValueOf(value); err == nil && ofText(of.Kind()) {
			p.Type, p.Value = TypeString, of.String()
			break
		}
		return fmt.Errorf("execution context: key %q: a %T cannot be stored (allowed: string, int, float64, decimal, bool, date, time, duration)", key, value)
	}
	text, err := canonicalText(p.Type, p.Value)
	if err != nil {
		return fmt.Errorf("execution context: key %q: %w", key, err)
	}
	if d, ok := value.(row.Decimal); ok {
		text = d.String() // with its scale
	}
	next := contextValue{p.Type, text}
	if old, ok := c.values[key]; ok && old == next {
		return nil
	}
	if c.values == nil {
		c.values = map[string]contextValue{}
	}
	c.values[key] = next
	c.touch(key)
	return nil
}

// ofText reports whether values of the kind are stored as their text.
func ofText(k row.Kind) bool {
	return k == row.JSONKind || k == row.UUIDKind || k == row.BytesKind || k.IsList()
}

// Get returns the value under key, of the Go type it was put as (int as int64). A stored value that
// cannot be read as its type is returned as its text.
func (c *ExecutionContext) Get(key string) (any, bool) {
	v, ok := c.values[key]
	if !ok {
		return nil, false
	}
	value, err := ParseParameter(v.Type, v.Text)
	if err != nil {
		return v.Text, true
	}
	return value, true
}

// Delete removes key.
func (c *ExecutionContext) Delete(key string) {
	if _, ok := c.values[key]; ok {
		delete(c.values, key)
		c.touch(key)
	}
}

func (c *ExecutionContext) touch(key string) {
	if c.changed == nil {
		c.changed = map[string]bool{}
	}
	c.changed[key] = true
}

// Merge applies the changes of others: the keys that were put or deleted there since it was made, read
// or marked stored. Other keys stay.
func (c *ExecutionContext) Merge(others *ExecutionContext) {
	for key := range others.changed {
		value, ok := others.values[key]
		if !ok {
			c.Delete(key)
			continue
		}
		if c.values == nil {
			c.values = map[string]contextValue{}
		}
		c.values[key] = value
		c.touch(key)
	}
}

// Refresh takes over the stored keys. Of the keys that are not stored, only those that were put and not
// written stay.
func (c *ExecutionContext) Refresh(stored *ExecutionContext) {
	for key := range c.values {
		if _, ok := stored.values[key]; !ok && !c.changed[key] {
			delete(c.values, key)
		}
	}
	for key, value := range stored.values {
		if c.values == nil {
			c.values = map[string]contextValue{}
		}
		c.values[key] = value
		delete(c.changed, key)
	}
}

// Keys returns the keys, sorted.
func (c *ExecutionContext) Keys() []string { return slices.Sorted(maps.Keys(c.values)) }

// Changed reports whether Put or Delete changed anything since the context was
// made, read, or marked stored; an unchanged context is not written again.
func (c *ExecutionContext) Changed() bool { return len(c.changed) > 0 }

// Stored marks the present state as written.
func (c *ExecutionContext) Stored() { c.changed = nil }

// Clone returns an independent copy.
func (c *ExecutionContext) Clone() *ExecutionContext {
	return &ExecutionContext{values: maps.Clone(c.values), changed: maps.Clone(c.changed)}
}

// Encode returns the stored form. It fails, naming the largest key, beyond MaxContextBytes, not
// counting the value of FilesKey.
func (c *ExecutionContext) Encode() ([]byte, error) {
	if len(c.values) == 0 {
		return nil, nil
	}
	data, err := json.Marshal(map[string]any{"version": contextVersion, "values": c.values})
	if err != nil {
		return nil, fmt.Errorf("execution context: %w", err)
	}
	files := len(c.values[FilesKey].Text)
	if files > MaxFilesBytes {
		return nil, fmt.Errorf("execution context: %w: %d bytes under %q, allowed %d", ErrContextTooLarge, files, FilesKey, MaxFilesBytes)
	}
	if len(data)-files > MaxContextBytes {
		return nil, fmt.Errorf("execution context: %w: %d bytes, allowed %d; the largest key is %q", ErrContextTooLarge, len(data)-files, MaxContextBytes, c.largest())
	}
	return data, nil
}

// ErrContextTooLarge is the cause of Encode's failure on an oversized context.
var ErrContextTooLarge = errors.New("too large")

func (c *ExecutionContext) largest() string {
	longest, name := -1, ""
	for _, key := range c.Keys() {
		if n := len(c.values[key].Text); n > longest && key != FilesKey {
			longest, name = n, key
		}
	}
	return name
}
