package taskports

import (
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// OutcomeOf returns the outcome: an error is Failure, fatal by a BatchError. An outcome that cannot be stored
// is a failure.
func OutcomeOf(o task.Outcome, err error) task.Outcome {
	if err == nil {
		if wrong := o.Check(); wrong != nil {
			return task.Outcome{Kind: task.OutcomeFailure, Reason: fmt.Sprintf("the handler's outcome: %v", wrong), Fatal: true}
		}
		return o
	}
	failed := task.Outcome{Kind: task.OutcomeFailure, Reason: err.Error(), RetryHint: o.RetryHint, Alternatives: o.Alternatives, Fatal: isFatal(err)}
	failed.Artifacts = o.Artifacts
	if wrong := failed.Check(); wrong != nil {
		failed.Artifacts, failed.RetryHint, failed.Alternatives = nil, nil, nil
		failed.Reason += fmt.Sprintf(" (the handler's outcome: %v)", wrong)
	}
	return failed
}

func isFatal(err error) bool {
	batch, ok := errors.AsType[*exception.BatchError](err)
	return ok && !batch.Retryable && !batch.Skippable
}
