package core

import (
	"encoding/json"
	"errors"
	"slices"
)

// Confinement restricts the paths of an execution that a client of the API launched (rule SE3). A path
// with a value from the client in it must be below one of the roots, by its real path. It is stored
// with the execution, so that restarts and workers apply it too.
type Confinement struct {
	// Roots are absolute folders.
	Roots []string `json:"roots"`
	// Data are the roots that are for data, and not the folder of the job file. In the other roots only data files
	// are written and removed. Empty also in what was stored by a version that did not have it.
	Data []string `json:"data,omitempty"`
	// Given are the names of the parameters that have a value of the client.
	Given []string `json:"given"`
}

// Holds reports whether the parameter has a value from the client. It is false for nil.
func (c *Confinement) Holds(parameter string) bool {
	return c != nil && slices.Contains(c.Given, parameter)
}

// EncodeConfinement returns the stored form; empty for nil.
func EncodeConfinement(c *Confinement) (string, error) {
	if c == nil {
		return "", nil
	}
	text, err := json.Marshal(c)
	return string(text), err
}

// DecodeConfinement reads the stored form. An unreadable form is an error: an execution is never
// treated as unrestricted by mistake.
func DecodeConfinement(text string) (*Confinement, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // most executions have none
	}
	c := &Confinement{}
	if err := json.Unmarshal([]byte(text), c); err != nil {
		return nil, errors.Join(errors.New("the stored confinement of the execution is unreadable"), err)
	}
	return c, nil
}
