package repository

import (
	"encoding/json"
	"fmt"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// maxMessageBytes is the maximum length of a stored message; the rest is cut off.
const maxMessageBytes = 32 << 10

// storable turns any text into one that every database accepts, so that the record of a failure
// cannot fail because of the text that the message quotes (rule T5).
func storable(text string) string { return gormtx.Storable(text, maxMessageBytes) }

// validText replaces the parts of a text that no database accepts.
func validText(text string) string { return gormtx.ValidText(text) }

func encodeFiles(files []core.DefinitionFile) (string, error) {
	if len(files) == 0 {
		return "", nil
	}
	data, err := json.Marshal(files)
	if err != nil {
		return "", fmt.Errorf("files of the definition: %w", err)
	}
	return string(data), nil
}

func decodeFiles(text string) ([]core.DefinitionFile, error) {
	if text == "" {
		return nil, nil
	}
	var files []core.DefinitionFile
	if err := json.Unmarshal([]byte(text), &files); err != nil {
		return nil, fmt.Errorf("stored files of the definition: %w", err)
	}
	return files, nil
}

func encodeOut(out core.Results) (string, error) {
	data, err := out.Encode()
	return string(data), err
}

func decodeOut(text string) (map[string]any, error) {
	if text == "" {
		return nil, nil
	}
	var out core.Results
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("stored results of the step: %w", err)
	}
	return out, nil
}

type storedCounts struct {
	Read        int64 `json:"read,omitempty"`
	Filter      int64 `json:"filter,omitempty"`
	Write       int64 `json:"write,omitempty"`
	ReadSkip    int64 `json:"read_skip,omitempty"`
	ProcessSkip int64 `json:"process_skip,omitempty"`
	WriteSkip   int64 `json:"write_skip,omitempty"`
	Commit      int64 `json:"commit,omitempty"`
	Rollback    int64 `json:"rollback,omitempty"`
}

// encodeCounts returns the stored form of counters, empty for none.
func encodeCounts(c core.Counters) (string, error) {
	if c == (core.Counters{}) {
		return "", nil
	}
	data, err := json.Marshal(storedCounts(c))
	return string(data), err
}

func decodeCounts(text string) (core.Counters, error) {
	if text == "" {
		return core.Counters{}, nil
	}
	var c storedCounts
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return core.Counters{}, fmt.Errorf("stored counters: %w", err)
	}
	return core.Counters(c), nil
}

// knownCounts are counters for a sum; the step itself says that they are unreadable.
func knownCounts(text string) core.Counters {
	c, err := decodeCounts(text)
	if err != nil {
		return core.Counters{}
	}
	return c
}

// encodeContext returns the stored form of a context; write is false for one that is nil or did not
// change.
func encodeContext(c *core.ExecutionContext) (text string, write bool, err error) {
	if c == nil || !c.Changed() {
		return "", false, nil
	}
	data, err := c.Encode()
	return string(data), true, err
}
