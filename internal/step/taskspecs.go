package step

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Specs makes a task of each payload. If the step has a Key or an After, these fields of the payload,
// which is an object then, become the key of the task and the tasks that it waits for, and are not part
// of its payload (rule TO6).
func (c TasksConfig) Specs(payloads []json.RawMessage) ([]task.Spec, error) {
	specs := make([]task.Spec, len(payloads))
	for i, payload := range payloads {
		specs[i] = task.Spec{Type: c.Handler, Payload: payload, Title: fmt.Sprintf("%s %d", c.Name, i+1), On: c.On}
		if c.Key == "" && c.After == "" {
			continue
		}
		if err := c.order(&specs[i]); err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return specs, nil
}

func (c TasksConfig) order(spec *task.Spec) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(spec.Payload, &fields); err != nil || fields == nil {
		return fmt.Errorf("it is not an object, so it has no field %s", c.keyField())
	}
	var err error
	if spec.Key, err = oneKey(fields[c.Key]); err != nil {
		return fmt.Errorf("key: %s: %w", c.Key, err)
	}
	if spec.After, err = keysIn(fields[c.After]); err != nil {
		return fmt.Errorf("after: %s: %w", c.After, err)
	}
	delete(fields, c.Key)
	delete(fields, c.After)
	spec.Payload, err = json.Marshal(fields)
	return err
}

func (c TasksConfig) keyField() string {
	if c.Key == "" {
		return c.After
	}
	return c.Key
}

// oneKey returns a key that is a text or a number; "" means none.
func oneKey(value json.RawMessage) (string, error) {
	var text string
	var number json.Number
	switch {
	case len(value) == 0 || bytes.Equal(value, []byte("null")):
		return "", nil
	case json.Unmarshal(value, &text) == nil:
		return text, nil
	case json.Unmarshal(value, &number) == nil:
		return number.String(), nil
	}
	return "", fmt.Errorf("%s is not a text or a number", value)
}

// keysIn returns the keys of a list, or of a text with commas between them.
func keysIn(value json.RawMessage) ([]string, error) {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		text, err := oneKey(value)
		if err != nil {
			return nil, fmt.Errorf("%s is not a list of keys or a text of keys separated by commas", value)
		}
		var keys []string
		for key := range strings.SplitSeq(text, ",") {
			if key = strings.TrimSpace(key); key != "" {
				keys = append(keys, key)
			}
		}
		return keys, nil
	}
	keys := make([]string, len(list))
	for i, value := range list {
		var err error
		if keys[i], err = oneKey(value); err != nil {
			return nil, err
		}
	}
	return keys, nil
}
