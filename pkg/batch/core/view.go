package core

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// View is the view of a run for conditions, deciders and late-bound values: its current records. They
// are copies; changes to them are not stored.
type View struct {
	Job *JobExecution
	// Steps are the steps of the instance, by name: the newest execution of each that has run, or was
	// passed, in this execution.
	Steps map[string]StepExecution
	// Last is the step that ended before in the same flow, or nil.
	Last *StepExecution
	// Step is the step in question; nil means the flow.
	Step *StepExecution
	// Part is the partition, or nil.
	Part *Partition
	// Outcome is the outcome of the flow, for steps and listeners after it; nil before.
	Outcome *Outcome
}

// Outcome is the outcome of a flow, or of an element of it.
type Outcome struct {
	Status   Status
	ExitCode string
	// Message is the reason of a failure or stop.
	Message string
	// Step is the name of the step that failed and decided, or empty.
	Step string
	// Settles is as in StepExecution.
	Settles bool
}

// storedOutcome is the value stored under OutcomeKey.
type storedOutcome struct {
	Outcome Outcome `json:"outcome"`
	Gate    string  `json:"gate,omitempty"`
}

// maxStoredMessage bounds the message that is kept with an outcome, in bytes.
const maxStoredMessage = 8 << 10

// EncodeOutcome returns the value stored under OutcomeKey: the outcome of a flow, and the text of its
// gate.
func EncodeOutcome(out Outcome, gate string) (string, error) {
	if len(out.Message) > maxStoredMessage {
		out.Message = strings.ToValidUTF8(out.Message[:maxStoredMessage], "") + "…"
	}
	text, err := json.Marshal(storedOutcome{out, gate})
	if err != nil {
		return "", fmt.Errorf("store the outcome of the flow: %w", err)
	}
	return string(text), nil
}

// TakeOutcome removes the value of EncodeOutcome from the context of a parked step and returns it;
// false if there is none.
func TakeOutcome(c *ExecutionContext) (out Outcome, gate string, ok bool, err error) {
	if c == nil {
		return out, "", false, nil
	}
	stored, ok := c.Get(OutcomeKey)
	if !ok {
		return out, "", false, nil
	}
	c.Delete(OutcomeKey)
	var kept storedOutcome
	text, _ := stored.(string)
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		return out, "", false, fmt.Errorf("the outcome of the flow in the step's context, %s: %w", OutcomeKey, err)
	}
	return kept.Outcome, kept.Gate, true, nil
}

// Condition is a question about a run: a bare expression of the job file, or a Go
// function.
type Condition struct {
	// Text is the condition as written, for messages.
	Text string
	// Holds evaluates it. An error fails the element or step that it belongs to.
	Holds func(ctx context.Context, v *View) (bool, error)
	// Try answers it for a plan, which does not know the whole view: known is false if the answer
	// depends on an unknown value. nil means that only Holds can answer.
	Try func(ctx context.Context, v *View, unknown Unknown) (holds, known bool, err error)
	// Values explains the answer, such as "skipped = 30, read = 100"; may be nil.
	Values func(v *View) string
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
func (c *Condition) Check(ctx context.Context, v *View) (held bool, gate string, err error) {
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

// Decider returns the exit code of a decision: the component kind "decider".
type Decider interface {
	Decide(ctx context.Context, v *View) (string, error)
}

// DeciderFunc makes a function a Decider.
type DeciderFunc func(ctx context.Context, v *View) (string, error)

// Decide calls f.
func (f DeciderFunc) Decide(ctx context.Context, v *View) (string, error) { return f(ctx, v) }

// Group is a set of steps in one outer transaction.
type Group struct {
	Name string
	// Database is the name of the transaction's database.
	Database string
}

// DeferredEnd is a step's end that is recorded after the group's transaction: inside it the record
// would claim more than is committed.
type DeferredEnd struct {
	Ref    StepRef
	Name   string
	Change StepChange
}

// Promotion copies keys of a step's context to the job's (rule D4).
type Promotion struct {
	// Keys maps keys of the step to keys of the job.
	Keys map[string]string
	// Statuses are patterns of the exit codes at which it happens; empty means COMPLETED.
	Statuses []string
	// Strict makes a key that the step lacks an ErrMissingKey; otherwise it is left out, and the job's
	// value under it stays.
	Strict bool
}

// Apply copies the keys if the exit code matches. The error names all missing keys.
func (p *Promotion) Apply(exit string, step, job *ExecutionContext) error {
	if !p.concerns(exit) {
		return nil
	}
	missing := p.Missing(exit, step)
	for _, key := range sortedKeys(p.Keys) {
		value, ok := step.Get(key)
		if !ok {
			continue
		}
		if err := job.Put(p.Keys[key], value); err != nil {
			return fmt.Errorf("promote %s: %w", key, err)
		}
	}
	if p.Strict && len(missing) > 0 {
		return fmt.Errorf("promote %s: %w", strings.Join(missing, ", "), ErrMissingKey)
	}
	return nil
}

// Missing returns the keys, sorted, that a step with this exit code should promote but lacks; none if
// it promotes nothing.
func (p *Promotion) Missing(exit string, step *ExecutionContext) (missing []string) {
	if !p.concerns(exit) {
		return nil
	}
	for _, key := range sortedKeys(p.Keys) {
		if _, ok := step.Get(key); !ok {
			missing = append(missing, key)
		}
	}
	return missing
}

func (p *Promotion) concerns(exit string) bool {
	statuses := p.Statuses
	if len(statuses) == 0 {
		statuses = []string{ExitCompleted}
	}
	return slices.ContainsFunc(statuses, func(pattern string) bool { return MatchPattern(pattern, exit) })
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
