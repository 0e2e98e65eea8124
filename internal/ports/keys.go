package ports

import "github.com/surfin-batch/surfin/pkg/batch/core"

// WaitsKey is of a job's step: the execution with the key waited for (rule L12).
const WaitsKey = "surfin.waits_for"

// OutcomeKey is of a parked `finally` step: the flow's outcome.
const OutcomeKey = "surfin.outcome"

// TasksKey is a step's group of tasks.
const TasksKey = "surfin.tasks"

// ChildKey is the child job's first parameters.
const ChildKey = "surfin.child"

// ChildOf is the child's execution; 0 if none, or it did not end.
func ChildOf(s *core.StepExecution) core.JobExecutionID {
	if s.Context == nil {
		return 0
	}
	if _, is := s.Context.Get(ChildKey); !is {
		return 0
	}
	switch id := s.Out["execution"].(type) {
	case int64:
		return core.JobExecutionID(id)
	case float64:
		return core.JobExecutionID(id)
	}
	return 0
}
