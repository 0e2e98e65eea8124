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

// Limits of stored data (rule D4).
const (
	MaxContextBytes = 64 << 10
	// MaxFilesBytes is for FilesKey, apart from MaxContextBytes.
	MaxFilesBytes = 8 << 20
)

// FilesKey keeps a reader's list of files, put once: a context is written only if changed.
const FilesKey = "surfin.files"

// contextVersion: newer formats are refused, as an older binary would misread them.
const contextVersion = 1

// ExecutionContext is a step's or job's small typed memory over restarts; an int stays an int. It is not safe
// for concurrent use.
type ExecutionContext struct {
	values  map[string]contextValue
	changed map[string]bool
}

type contextValue struct {
	Type ParameterType `json:"t"`
	Text string        `json:"v"`
}

// NewExecutionContext returns an empty context.
func NewExecutionContext() *ExecutionContext { return &ExecutionContext{} }

// ParseExecutionContext reads Encode; empty data is empty. Get returns an unreadable value as its text.
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

// Put stores string, int, int64, float64, bool, Date, time.Time, time.Duration, row.Decimal; and as text
// row.JSON, row.UUID, []byte, slices of simple values. Others are errors, as are NaN, infinities, years beyond
// 0 to 9999.
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

func ofText(k row.Kind) bool {
	return k == row.JSONKind || k == row.UUIDKind || k == row.BytesKind || k.IsList()
}

// Get returns the Go type that was put (int as int64); an unreadable value as text.
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

// Merge applies others' keys put or deleted since they were made, read or stored.
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

// Refresh takes over stored keys; keys put and not written stay.
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

// Keys are sorted.
func (c *ExecutionContext) Keys() []string { return slices.Sorted(maps.Keys(c.values)) }

// Changed reports a Put or Delete since it was made, read or stored.
func (c *ExecutionContext) Changed() bool { return len(c.changed) > 0 }

// Stored marks it as written.
func (c *ExecutionContext) Stored() { c.changed = nil }

// Clone returns an independent copy.
func (c *ExecutionContext) Clone() *ExecutionContext {
	return &ExecutionContext{values: maps.Clone(c.values), changed: maps.Clone(c.changed)}
}

// Encode fails beyond MaxContextBytes, without FilesKey's value, and names the largest key.
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

// ErrContextTooLarge is Encode's failure.
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
