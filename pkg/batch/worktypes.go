package batch

import (
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/runtime"
)

// Operator runs, restarts and stops jobs, redrives skipped items and reads the history.
type Operator = operator.Service

// JobRepository reads and moves the history.
type JobRepository = ports.Repository

// WorkOptions configure App.Work.
type WorkOptions = runtime.Options

// TaskService submits, reads, cancels and reruns tasks.
type TaskService = runtime.TaskService
