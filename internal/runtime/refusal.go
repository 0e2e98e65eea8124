package runtime

import (
	"errors"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
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
	if _, over := errors.AsType[*taskports.GroupOverError](err); over {
		return refuse(refusal.Over, err)
	}
	if errors.Is(err, taskports.ErrOtherSubmission) {
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
