package ports

import (
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// OpenWork counts the work that a parked execution waits for.
type OpenWork struct {
	Parts    int64 `json:"partitions,omitempty"`
	Tasks    int64 `json:"tasks,omitempty"`
	Children int64 `json:"child_jobs,omitempty"`
}

// String is "3 tasks and 1 child job", or "".
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

// StepWork is submitted by steps, apart from partitions.
type StepWork struct {
	Groups map[core.StepExecutionID]StepGroup
	// Children are not over.
	Children []OpenChild
}

// StepGroup is a step's group of tasks.
type StepGroup struct {
	Group  int64
	States map[string]int
}

// OpenChild is a child job not over.
type OpenChild struct {
	Parent    core.JobExecutionID
	Call      core.StepExecutionID
	Execution core.JobExecutionID
	Status    core.Status
}
