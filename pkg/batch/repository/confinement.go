package repository

import (
	"encoding/json"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// encodeConfinement is empty for nil.
func encodeConfinement(c *core.Confinement) (string, error) {
	if c == nil {
		return "", nil
	}
	text, err := json.Marshal(c)
	return string(text), err
}

// decodeConfinement fails if unreadable: never unrestricted by mistake.
func decodeConfinement(text string) (*core.Confinement, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // most executions have none
	}
	c := &core.Confinement{}
	if err := json.Unmarshal([]byte(text), c); err != nil {
		return nil, fmt.Errorf("stored confinement: %w", err)
	}
	return c, nil
}
