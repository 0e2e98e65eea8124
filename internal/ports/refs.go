package ports

import "github.com/surfin-batch/surfin/pkg/batch/core"

// JobRef is the guard of a write about a job execution: it applies only while the row has this owner
// and epoch.
type JobRef struct {
	ID    core.JobExecutionID
	Owner core.Owner
	Epoch int64
	// Branch is the part of a branch of a split that a worker walks (rule P8): Owner and Epoch are then
	// the part's, and guard the writes of the walk. 0 means the job's own.
	Branch core.StepExecutionID
}

// StepRef is the guard of a write about a step execution.
type StepRef struct {
	ID    core.StepExecutionID
	Owner core.Owner
	Epoch int64
}
