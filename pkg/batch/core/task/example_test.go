package task_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// doubling tries again after 2, 4, 8, ... seconds.
type doubling struct{ maxRetryDelay time.Duration }

func (d doubling) Decide(c task.Case) task.Decision {
	if c.Spent.Attempts >= c.Budget.MaxAttempts {
		return task.MarkDead(fmt.Sprintf("Max attempts (%d) exceeded", c.Budget.MaxAttempts))
	}
	delay := min(time.Second<<c.Spent.Attempts, d.maxRetryDelay)
	return task.Retry(delay, fmt.Sprintf("Retry %d of %d after %v", c.Spent.Attempts+1, c.Budget.MaxAttempts, delay))
}

// A decider is a pure function: it is tested without a database. Register it with batch.TaskDecider.
func ExampleDecider() {
	var d task.Decider = doubling{maxRetryDelay: 5 * time.Second}
	for attempts := 1; attempts <= 4; attempts++ {
		decision := d.Decide(task.Case{
			Outcome: task.Failure("Network error"),
			Budget:  task.Budget{MaxAttempts: 4}.Filled(),
			Spent:   task.Spent{Attempts: attempts},
		})
		fmt.Println(decision.Dead, decision.Reason)
	}
	// Output:
	// false Retry 2 of 4 after 2s
	// false Retry 3 of 4 after 4s
	// false Retry 4 of 4 after 5s
	// true Max attempts (4) exceeded
}

// The outcome of an attempt is built step by step.
func ExampleFailure() {
	o := task.Failure("Network error").
		WithArtifact(task.Stderr("connection refused")).
		WithRetryHint(json.RawMessage(`{"delay_ms": 1000}`))
	text, err := json.Marshal(o)
	fmt.Println(string(text), err)
	// Output:
	// {"kind":"FAILURE","artifacts":[{"kind":"Stderr","value":"connection refused"}],"reason":"Network error","retry_hint":{"delay_ms":1000}} <nil>
}

// The table lists the moves allowed in each state; the repository makes a move with one guarded UPDATE.
func ExampleMachine() {
	machine := task.Machine()
	for _, state := range task.States() {
		fmt.Printf("%-15s over %-5v claim: %s\n", state, state.IsOver(), machine.Answer(task.MoveClaim, 1, state, core.Mark{}))
	}
	// Output:
	// WAITING         over false claim: rejected
	// PENDING         over false claim: applied
	// ASSIGNED        over false claim: rejected
	// RUNNING         over false claim: rejected
	// RETRY_SCHEDULED over false claim: rejected
	// ORPHANED        over false claim: applied
	// SUCCEEDED       over true  claim: rejected
	// FAILED          over true  claim: rejected
	// TIMED_OUT       over true  claim: rejected
	// CANCELED        over true  claim: rejected
}
