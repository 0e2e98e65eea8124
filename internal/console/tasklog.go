package console

import (
	"fmt"
	"strconv"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// taskLogView is a page of an output of a task.
type taskLogView struct {
	Task           link
	Outputs        []choice
	Output         string
	Earlier, Later string
}

func (v ofWork) taskLog() (*page, error) {
	const size = 20_000
	of := task.ID(v.number("task"))
	log, err := v.Tasks.Log(v.r.Context(), taskports.LogFilter{
		Task: of, Attempt: int(min(v.key("attempt"), maxAttempt)), Output: task.ArtifactKind(v.text("output")), From: int(min(v.key("from"), maxAttempt)), Limit: size,
	})
	if err != nil {
		return nil, err
	}
	view := taskLogView{Task: v.taskLink(of), Output: v.masked(log.Text)}
	for _, o := range log.Outputs {
		name := fmt.Sprintf("attempt %d, %s", o.Attempt, o.Output)
		if o.Characters > 0 {
			name += " (" + humanize.Plural(o.Characters, "character") + ")"
		}
		view.Outputs = append(view.Outputs, choice{name, v.with("attempt", strconv.Itoa(o.Attempt), "output", string(o.Output), "from", ""), o.Attempt == log.Attempt && string(o.Output) == log.Output})
	}
	if log.From > 0 {
		view.Earlier = v.with("from", "")
	}
	if log.Next > 0 {
		view.Later = v.with("attempt", strconv.Itoa(log.Attempt), "output", log.Output, "from", strconv.Itoa(log.Next))
	}
	title := "Output of task " + view.Task.Text
	return &page{Title: title, Heading: title, Body: view}, nil
}

// maxAttempt bounds numbers in an address.
const maxAttempt = 1 << 30
