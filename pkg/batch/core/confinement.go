package core

import "slices"

// Confinement restricts the paths of an API client's execution (rule SE3): one with a client's value must be
// below a root, by its real path. Restarts and workers apply it too.
type Confinement struct {
	// Roots are absolute folders.
	Roots []string `json:"roots"`
	// Data are roots for data: in other roots only data files are written and removed. Empty also from older
	// versions.
	Data []string `json:"data,omitempty"`
	// Given are parameters with a client's value.
	Given []string `json:"given"`
}

// Holds reports whether the client gave it; false for nil.
func (c *Confinement) Holds(parameter string) bool {
	return c != nil && slices.Contains(c.Given, parameter)
}
