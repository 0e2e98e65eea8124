package batch

import "github.com/surfin-batch/surfin/pkg/batch/operator"

// What an App is asked for, and what it answers: package operator's.
type (
	RunRequest     = operator.RunRequest
	RestartRequest = operator.RestartRequest
	RedriveRequest = operator.RedriveRequest
	PurgeRequest   = operator.PurgeRequest
	Execution      = operator.Execution
	Running        = operator.Running
	Refusal        = operator.Refusal
)
