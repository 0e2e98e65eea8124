package core

import (
	"fmt"
	"strings"
)

// OpenWork is the work that a parked execution waits for: the number of open items of each kind.
type OpenWork struct {
	Parts    int64 `json:"partitions,omitempty"`
	Tasks    int64 `json:"tasks,omitempty"`
	Children int64 `json:"child_jobs,omitempty"`
}

// String names the open work, as in "3 tasks and 1 child job", or returns "".
func (w OpenWork) String() string {
	var words []string
	for _, of := range []struct {
		n    int64
		name string
	}{{w.Parts, "partition"}, {w.Tasks, "task"}, {w.Children, "child job"}} {
		switch of.n {
		case 0:
		case 1:
			words = append(words, "1 "+of.name)
		default:
			words = append(words, fmt.Sprintf("%d %ss", of.n, of.name))
		}
	}
	return strings.Join(words, " and ")
}

// StepWork is the work that steps have submitted, apart from partitions.
type StepWork struct {
	// Groups are the groups of tasks, by the step that waits for each.
	Groups map[StepExecutionID]StepGroup
	// Children are the child jobs that are not over.
	Children []OpenChild
}

// StepGroup is a group of tasks that a step has submitted.
type StepGroup struct {
	Group int64
	// States counts the tasks by state.
	States map[string]int
}

// OpenChild is an execution of a child job that is not over.
type OpenChild struct {
	// Parent is the execution that launched it, Call JobExecution.ParentCall.
	Parent    JobExecutionID
	Call      StepExecutionID
	Execution JobExecutionID
	Status    Status
}
