package task_test

import (
	"encoding/json"
	"fmt"
	"time"

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

// A task is over in four states; a rerun opens three of them again.
func ExampleState_IsOver() {
	for _, state := range []task.State{task.Pending, task.RetryScheduled, task.Succeeded, task.Failed, task.TimedOut, task.Canceled} {
		if state.IsOver() {
			fmt.Println(state)
		}
	}
	// Output:
	// SUCCEEDED
	// FAILED
	// TIMED_OUT
	// CANCELED
}
