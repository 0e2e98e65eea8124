package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type storedParameter struct {
	Name        string        `json:"name"`
	Type        ParameterType `json:"type"`
	Value       string        `json:"value"`
	Identifying bool          `json:"identifying"`
	Path        string        `json:"path,omitempty"`
}

// MarshalJSON writes names, types and canonical texts.
func (ps Parameters) MarshalJSON() ([]byte, error) {
	list := make([]storedParameter, 0, len(ps.list))
	for _, p := range ps.list {
		text, err := p.Canonical()
		if err != nil {
			return nil, err
		}
		list = append(list, storedParameter{Name: p.Name, Type: p.Type, Value: text, Identifying: p.Identifying, Path: p.Path})
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads the format of MarshalJSON.
func (ps *Parameters) UnmarshalJSON(data []byte) error {
	var list []storedParameter
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	var params []Parameter
	for _, p := range list {
		value, err := ParseParameter(p.Type, p.Value)
		if err != nil {
			return fmt.Errorf("parameter %s: %w", p.Name, err)
		}
		params = append(params, Parameter{Name: p.Name, Type: p.Type, Value: value, Identifying: p.Identifying, Path: p.Path})
	}
	read, err := NewParameters(params...)
	if err == nil {
		*ps = read
	}
	return err
}

// In transit to another process, with unstored state.
type contextJSON struct {
	Version int                     `json:"version"`
	Values  map[string]contextValue `json:"values"`
	Changed map[string]bool         `json:"changed,omitempty"`
}

// MarshalJSON writes typed values; unlike Encode without limit.
func (c *ExecutionContext) MarshalJSON() ([]byte, error) {
	return json.Marshal(contextJSON{contextVersion, c.values, c.changed})
}

// UnmarshalJSON reads MarshalJSON or Encode.
func (c *ExecutionContext) UnmarshalJSON(data []byte) error {
	read, err := ParseExecutionContext(data)
	if err != nil {
		return err
	}
	var state contextJSON
	if err := json.Unmarshal(data, &state); err != nil {
		return fmt.Errorf("execution context: %w", err)
	}
	*c = ExecutionContext{values: read.values, changed: state.Changed}
	return nil
}

// Results are a step's named results. In JSON an integral float keeps its point: ints return as int64, floats
// as float64.
type Results map[string]any

// Encode returns the stored form, or empty. It fails beyond MaxContextBytes or without JSON.
func (r Results) Encode() ([]byte, error) {
	if len(r) == 0 {
		return nil, nil
	}
	data, err := json.Marshal(r)
	if err == nil && len(data) <= MaxContextBytes {
		return data, nil
	}
	longest, largest := -1, ""
	for _, key := range slices.Sorted(maps.Keys(r)) {
		one, err := json.Marshal(withPoints(r[key]))
		if err != nil {
			return nil, fmt.Errorf("results of the step: key %q: %w", key, err)
		}
		if len(one) > longest {
			longest, largest = len(one), key
		}
	}
	if err != nil {
		return nil, fmt.Errorf("results of the step: %w", err)
	}
	return nil, fmt.Errorf("results of the step: %w: %d bytes, allowed %d; the largest key is %q", ErrContextTooLarge, len(data), MaxContextBytes, largest)
}

// Plain returns the results as read from storage: int64, float64, decimals as text, times and structs as JSON,
// so they are the same before and after a restart.
func (r Results) Plain() (Results, error) {
	data, err := r.Encode()
	if err != nil || len(data) == 0 {
		return nil, err
	}
	var plain Results
	return plain, json.Unmarshal(data, &plain)
}

// MarshalJSON implements json.Marshaler.
func (r Results) MarshalJSON() ([]byte, error) { return json.Marshal(withPoints(map[string]any(r))) }

// UnmarshalJSON implements json.Unmarshaler.
func (r *Results) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var read map[string]any
	if err := decoder.Decode(&read); err != nil {
		return err
	}
	for key, value := range read {
		read[key] = withNumbers(value)
	}
	*r = read
	return nil
}

func withPoints(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if v == nil {
			return nil
		}
		out := make(map[string]any, len(v))
		for key, inner := range v {
			out[key] = withPoints(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = withPoints(inner)
		}
		return out
	case row.Decimal:
		return v.String() // a number would read back as a float
	case row.JSON:
		return string(v)
	case float64:
		text, err := json.Marshal(v)
		if err == nil && !bytes.ContainsAny(text, ".eE") {
			return json.RawMessage(append(text, ".0"...))
		}
	default:
		if of, err := row.ValueOf(value); err == nil && of.Kind().IsList() {
			elements := of.Elements()
			out := make([]any, len(elements))
			for i, inner := range elements {
				out[i] = withPoints(inner.Any())
			}
			return out
		}
	}
	return value
}

func withNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = withNumbers(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = withNumbers(inner)
		}
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return f
	}
	return value
}

type stepExecution StepExecution

type stepExecutionJSON struct {
	stepExecution
	Out Results
}

// MarshalJSON keeps Out's types.
func (s StepExecution) MarshalJSON() ([]byte, error) {
	return json.Marshal(stepExecutionJSON{stepExecution(s), s.Out})
}

// UnmarshalJSON reads the format of MarshalJSON.
func (s *StepExecution) UnmarshalJSON(data []byte) error {
	var read stepExecutionJSON
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	*s = StepExecution(read.stepExecution)
	s.Out = read.Out
	return nil
}
