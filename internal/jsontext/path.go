package jsontext

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Step is a key of an object, or an index of an array.
type Step struct {
	Key   string
	Index int  // if Array
	Array bool // into an array
	Fold  bool // whether the case of the key is ignored
}

// parsePath reads properties.mag, geometry.coordinates[0] or a["b.c"].d.
func parsePath(text string) ([]Step, error) {
	var steps []Step
	rest := text
	for rest != "" {
		if rest[0] == '[' {
			step, n, err := bracket(rest)
			if err == nil && len(steps) == 0 && step.Array {
				err = errors.New("it starts with an index, but items are objects")
			}
			if err != nil {
				return nil, err
			}
			steps, rest = append(steps, step), rest[n:]
			continue
		}
		if len(steps) > 0 {
			if rest[0] != '.' {
				return nil, fmt.Errorf(`expected "." or "[" before %q`, rest)
			}
			rest = rest[1:]
		}
		n := strings.IndexAny(rest, ".[]")
		if n < 0 {
			n = len(rest)
		}
		if n == 0 {
			return nil, errors.New("a key is empty")
		}
		steps, rest = append(steps, Step{Key: rest[:n]}), rest[n:]
	}
	if len(steps) == 0 {
		return nil, errors.New("it is empty")
	}
	return steps, nil
}

func bracket(text string) (Step, int, error) {
	if strings.HasPrefix(text, `["`) {
		var key string
		dec := json.NewDecoder(strings.NewReader(text[1:]))
		if err := dec.Decode(&key); err != nil {
			return Step{}, 0, fmt.Errorf("a quoted key does not end: %s", text)
		}
		n := 1 + int(dec.InputOffset())
		if n >= len(text) || text[n] != ']' {
			return Step{}, 0, fmt.Errorf(`expected "]" after %s`, text[:n])
		}
		return Step{Key: key}, n + 1, nil
	}
	n := strings.IndexByte(text, ']')
	if n < 0 {
		return Step{}, 0, fmt.Errorf(`"]" is missing after %s`, text)
	}
	index, err := strconv.ParseUint(text[1:n], 10, 31)
	if err != nil {
		return Step{}, 0, fmt.Errorf(`%s is neither an index (0, 1, 2, ...) nor a quoted key`, text[:n+1])
	}
	return Step{Index: int(index), Array: true}, n + 1, nil
}

// Keys returns the keys of a path that has keys only, such as data.features.
func Keys(path string) ([]string, error) {
	steps, err := parsePath(path)
	if err != nil {
		return nil, fmt.Errorf("%q is not a path: %w", path, err)
	}
	keys := make([]string, len(steps))
	for i, s := range steps {
		if s.Array {
			return nil, fmt.Errorf("%q has an index: only keys are allowed here", path)
		}
		keys[i] = s.Key
	}
	return keys, nil
}

// CheckName refuses a name that is surely an invalid path.
func CheckName(name string) error {
	_, err := parsePath(name)
	if err == nil {
		return nil
	}
	for rest := name; ; {
		i := strings.IndexByte(rest, '[')
		if i < 0 {
			return nil
		}
		if rest = rest[i+1:]; rest != "" && strings.IndexByte(`"-0123456789`, rest[0]) >= 0 {
			quoted, _ := json.Marshal(name) //nolint:errcheck // a string has a JSON form
			return fmt.Errorf("%q is not a path: %w; a key of this name is written [%s]", name, err, quoted)
		}
	}
}
