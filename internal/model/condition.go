package model

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// Condition is a bare expression of the job file, or a Go function.
type Condition struct {
	Text string
	// Holds evaluates it; an error fails the element or step.
	Holds func(ctx context.Context, v *core.View) (bool, error)
	// Try answers it for a plan: known is false if the answer depends on an unknown value. nil:
	// only Holds can answer.
	Try func(ctx context.Context, v *core.View, unknown Unknown) (holds, known bool, err error)
	// Values explains the answer, "skipped = 30, read = 100"; may be nil.
	Values func(v *core.View) string
}

// Unknown lists the parts of a View that a plan does not know.
type Unknown struct {
	Step    func(name string) bool
	Context bool
}

// Check evaluates a gate and its stored text, "skipped < 10: does not hold (skipped = 30)". A panic
// is an error.
func (c *Condition) Check(ctx context.Context, v *core.View) (held bool, gate string, err error) {
	err = exception.Guard(func() (err error) {
		held, err = c.Holds(ctx, v)
		return err
	})
	if err != nil {
		return false, c.Text + ": " + err.Error(), fmt.Errorf("%s: %w", c.Text, err)
	}
	gate = c.Text + ": holds"
	if !held {
		gate = c.Text + ": does not hold"
	}
	if c.Values != nil {
		if values := c.Values(v); values != "" {
			gate += " (" + values + ")"
		}
	}
	return held, gate, nil
}

// Group is a set of steps in one outer transaction.
type Group struct {
	Name     string
	Database string
}
