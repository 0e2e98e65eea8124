package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Change is a difference between two definitions of a job, for an instance that began
// with the first one and continues with the second.
type Change struct {
	// Step is the step or child job; empty means the file as a whole.
	Step string `json:"step,omitempty"`
	// What is a sentence without its subject: "is new".
	What string `json:"what"`
	// Refused reports that a restart needs consent: committed work depends on the changed part.
	Refused bool `json:"refused,omitempty"`
	// NewDefinition means that the step began, has committed nothing, and takes the new definition (rule
	// F4a).
	NewDefinition bool `json:"new_definition,omitempty"`
	// Kept is the old value that a restart still uses after it accepts the change, because it was stored when
	// the step began. It is empty if the change takes effect.
	Kept string `json:"kept,omitempty"`
	// Place is the position in the new definition: "job.yaml:11:9", or for a definition made in Go "job bill:
	// step load: chunk.reader"; empty means that it is not there.
	Place string `json:"place,omitempty"`
	// FormerTimes says that the file is the same, and that the program read local times otherwise (rule D5).
	FormerTimes bool `json:"former_times,omitempty"`
}

// String is the change as a sentence.
func (c Change) String() string {
	if c.Step == "" {
		return c.What
	}
	return "step " + c.Step + " " + c.What
}

// ChangedError refuses to restart an instance because the job file has changed in work
// that is committed (rule F4), or the meaning of its local times has (rule D5).
type ChangedError struct {
	Execution core.JobExecutionID
	Changes   []Change
	// Diff is a unified diff, without passwords, of the job file's lines with refused changes; empty means
	// that the definition was made in Go, or does not differ there.
	Diff string
}

// Error names the changes that are refused.
func (e *ChangedError) Error() string {
	return e.Summary(e.Execution) + ": " + strings.Join(e.Refused(), "; ")
}

// Summary is Error without the changes; last is the execution that it names.
func (e *ChangedError) Summary(last core.JobExecutionID) string {
	if !slices.ContainsFunc(e.Changes, func(c Change) bool { return c.Refused && !c.FormerTimes }) {
		return fmt.Sprintf("execution %d has committed work, and this version would read its times differently", last)
	}
	return fmt.Sprintf("the job file has changed since execution %d in what committed work depends on", last)
}

// Refused returns the changes that are refused, with their places.
func (e *ChangedError) Refused() []string {
	var texts []string
	for _, c := range e.Changes {
		switch {
		case c.Refused && c.Place != "":
			texts = append(texts, c.Place+": "+c.String())
		case c.Refused:
			texts = append(texts, c.String())
		}
	}
	return texts
}

// Restart is an instance that is to continue with a file.
type Restart struct {
	// Last is its newest execution, and Params are the parameters.
	Last    *core.JobExecution
	Params  core.Parameters
	History ports.History
	// Registry knows the components of both files.
	Registry *registry.Registry
}
