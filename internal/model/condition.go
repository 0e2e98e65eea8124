package model

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Condition is a question about a run: a bare expression of the job file, or a Go
// function.
type Condition struct {
	// Text is the condition as written, for messages.
	Text string
	// Holds evaluates it. An error fails the element or step that it belongs to.
	Holds func(ctx context.Context, v *core.View) (bool, error)
	// Try answers it for a plan, which does not know the whole view: known is false if the answer
	// depends on an unknown value. nil means that only Holds can answer.
	Try func(ctx context.Context, v *core.View, unknown Unknown) (holds, known bool, err error)
	// Values explains the answer, such as "skipped = 30, read = 100"; may be nil.
	Values func(v *core.View) string
}

// Unknown lists the parts of a View that a plan does not know.
type Unknown struct {
	// Step reports whether it is unknown if the step ran, and how it ended.
	Step func(name string) bool
	// Context means that the context of the job is unknown.
	Context bool
}

// Check evaluates the condition as a gate: whether it holds, and the stored text, such as "skipped <
// 10: does not hold (skipped = 30)". A panic is an error.
func (c *Condition) Check(ctx context.Context, v *core.View) (held bool, gate string, err error) {
	err = panics.Guard(func() (err error) {
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
	Name string
	// Database is the name of the transaction's database.
	Database string
}
