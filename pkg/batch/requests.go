package batch

import "github.com/surfin-batch/surfin/internal/operator"

// Requests and results of an App, from package operator.
type (
	RunRequest     = operator.RunRequest
	RestartRequest = operator.RestartRequest
	RedriveRequest = operator.RedriveRequest
	PurgeRequest   = operator.PurgeRequest
	Execution      = operator.Execution
	Running        = operator.Running
	Refusal        = operator.Refusal
)
