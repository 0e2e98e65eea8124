package runtime

import (
	"errors"

	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func refuse(reason refusal.Reason, err error, details ...error) *refusal.Refusal {
	r := &refusal.Refusal{Reason: reason, Err: err}
	for _, d := range details {
		r.Details = append(r.Details, d.Error())
	}
	return r
}

func refusalOf(err error) error {
	if err == nil {
		return nil
	}
	if _, over := errors.AsType[*task.GroupOverError](err); over {
		return refuse(refusal.Over, err)
	}
	if errors.Is(err, task.ErrOtherSubmission) {
		return refuse(refusal.OtherSubmission, err)
	}
	if errors.Is(err, core.ErrNotFound) {
		return refuse(refusal.NotFound, err)
	}
	if _, illegal := errors.AsType[*core.TransitionError](err); illegal {
		return refuse(refusal.IllegalState, err)
	}
	return err
}
