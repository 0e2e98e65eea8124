package batch

import (
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/runtime"
)

// Operator runs, restarts and stops jobs, redrives skipped items and reads the history. An [App] has its
// methods.
type Operator = operator.Service

// JobRepository reads and moves the history of executions; App.Repository is one.
type JobRepository = ports.JobRepository

// WorkOptions say how App.Work executes tasks and parts: slots, types, and how long it drains.
type WorkOptions = runtime.Options

// TaskService submits, reads, cancels and reruns tasks; App.Tasks is one.
type TaskService = runtime.TaskService
