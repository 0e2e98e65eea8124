package changes

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Kind of an event.
type Kind string

// The kinds. The last three are sent to every listener.
const (
	Execution Kind = "execution"
	Step      Kind = "step"
	Progress  Kind = "progress" // the counters of a running step
	Task      Kind = "task"
	Schedule  Kind = "schedule"
	Worker    Kind = "worker"
	Reset     Kind = "reset" // anything may have changed
	Away      Kind = "away"  // the database does not answer
	Back      Kind = "back"  // it answers again
)

// Kinds lists those that a listener selects.
func Kinds() []Kind { return []Kind{Execution, Step, Progress, Task, Schedule, Worker} }

// Event names a thing that changed.
type Event struct {
	Kind Kind `json:"kind" enum:"execution,step,progress,task,schedule,worker,reset,away,back" doc:"The name of the event"`
	// Number of the execution, step or task.
	Number int64 `json:"id,omitempty" doc:"Number of the execution, step or task"`
	// Execution is the execution itself, or the one that the step belongs to.
	Execution core.JobExecutionID `json:"execution,omitempty" doc:"The execution, or the one that the step belongs to"`
	// Name of the job or worker.
	Name string `json:"name,omitempty" doc:"Name of the job or worker"`
	// ID is where a listener can resume: after this event.
	ID string `json:"-"`
}

// Topics select events; empty selects all.
type Topics []Topic

// Topic selects the events of a kind.
type Topic struct {
	Kind Kind
	// Execution limits Execution, Step and Progress to an execution; 0 means all.
	Execution core.JobExecutionID
	// Task limits Task to a task; 0 means all.
	Task int64
	// Name limits Schedule to a job, and Worker to a worker; empty means all.
	Name string
}

const maxTopics = 100

// ParseTopics reads lists of KIND and KIND:NAME, separated by commas, such as
// "execution:12,step:12,task". The name is the number of an execution or task, or
// the name of a job or worker.
func ParseTopics(lists []string) (Topics, error) {
	var all Topics
	for _, list := range lists {
		for text := range strings.SplitSeq(list, ",") {
			if text = strings.TrimSpace(text); text == "" {
				continue
			}
			t, err := parseTopic(text)
			if err != nil {
				return nil, err
			}
			if all = append(all, t); len(all) > maxTopics {
				return nil, fmt.Errorf("more than %d topics", maxTopics)
			}
		}
	}
	return all, nil
}

func parseTopic(text string) (Topic, error) {
	kind, name, narrow := strings.Cut(text, ":")
	t := Topic{Kind: Kind(kind)}
	number, err := strconv.ParseInt(name, 10, 64)
	numbered := err == nil && number > 0
	switch t.Kind {
	case Execution, Step, Progress:
		t.Execution = core.JobExecutionID(number)
	case Task:
		t.Task = number
	case Schedule, Worker:
		t.Name, numbered = name, name != ""
	default:
		return t, fmt.Errorf("topic %q: allowed are execution, step, progress, task, schedule and worker", text)
	}
	if narrow && !numbered {
		return t, fmt.Errorf("topic %q: after the colon: the number of an execution (execution, step, progress) or task, or the name of a job (schedule) or worker", text)
	}
	if !narrow {
		t = Topic{Kind: t.Kind}
	}
	return t, nil
}

func (all Topics) matches(e Event) bool {
	if len(all) == 0 || e.Kind == Reset || e.Kind == Away || e.Kind == Back {
		return true
	}
	for _, t := range all {
		if t.matches(e) {
			return true
		}
	}
	return false
}

func (t Topic) matches(e Event) bool {
	return t.Kind == e.Kind && (t.Execution == 0 || t.Execution == e.Execution) && (t.Task == 0 || t.Task == e.Number) && (t.Name == "" || t.Name == e.Name)
}
