package operator

import (
	"github.com/surfin-batch/surfin/internal/refusal"
)

type (
	// Refusal is the error of a refused act, which changed nothing.
	Refusal = refusal.Refusal
	// Reason is why an act was refused.
	Reason = refusal.Reason
	// Action is a possible action, as data.
	Action = refusal.Action
	// Owner is the process that runs an execution.
	Owner = refusal.Owner
)
