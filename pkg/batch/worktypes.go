package batch

import "github.com/surfin-batch/surfin/internal/runtime"

// WorkOptions say how App.Work executes tasks and parts: slots, types, and how long it drains.
type WorkOptions = runtime.Options

// TaskService submits, reads, cancels and reruns tasks; App.Tasks is one.
type TaskService = runtime.TaskService
