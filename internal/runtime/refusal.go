package runtime

import (
	"encoding/json"
	"errors"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// TaskReason is the reason of a TaskRefusal.
type TaskReason string

// The reasons of a TaskRefusal.
const (
	// ReasonInvalid means that the request is wrong; Details lists every error.
	ReasonInvalid TaskReason = "invalid"
	// ReasonUnknownType means that no process would execute it.
	ReasonUnknownType TaskReason = "unknown_type"
	// ReasonNotFound means that the task or group was not found (core.ErrNotFound).
	ReasonNotFound TaskReason = "not_found"
	// ReasonIllegalState means that the state does not allow it (*core.TransitionError).
	ReasonIllegalState TaskReason = "illegal_state"
	// ReasonOver means that the group has ended (*task.GroupOverError).
	ReasonOver TaskReason = "over"
	// ReasonOtherSubmission means that the idempotency key was used for something else
	// (task.ErrOtherSubmission).
	ReasonOtherSubmission TaskReason = "other_submission"
)

// TaskRefusal is the error of a refused request, which changed nothing.
type TaskRefusal struct {
	Reason TaskReason
	Err    error
	// Details lists the errors one by one, such as "tasks[2]: payload: it is not JSON in UTF-8".
	Details []string
}

// Error returns the message of the cause.
func (r *TaskRefusal) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r *TaskRefusal) Unwrap() error { return r.Err }

// MarshalJSON writes the message in place of the cause.
func (r *TaskRefusal) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Reason  TaskReason `json:"reason"`
		Message string     `json:"message"`
		Details []string   `json:"details,omitempty"`
	}{r.Reason, r.Err.Error(), r.Details})
}

func refuse(reason TaskReason, err error, details ...error) *TaskRefusal {
	r := &TaskRefusal{Reason: reason, Err: err}
	for _, d := range details {
		r.Details = append(r.Details, d.Error())
	}
	return r
}

// refusalOf converts a refusal of the repository to one of the service; other errors stay
// unchanged.
func refusalOf(err error) error {
	if err == nil {
		return nil
	}
	if _, over := errors.AsType[*task.GroupOverError](err); over {
		return refuse(ReasonOver, err)
	}
	if errors.Is(err, task.ErrOtherSubmission) {
		return refuse(ReasonOtherSubmission, err)
	}
	if errors.Is(err, core.ErrNotFound) {
		return refuse(ReasonNotFound, err)
	}
	if _, illegal := errors.AsType[*core.TransitionError](err); illegal {
		return refuse(ReasonIllegalState, err)
	}
	return err
}
