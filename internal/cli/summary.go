package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// summarize returns the execution as in the database: right even if another
// process took it over.
func (c runCommands) summarize(ctx context.Context, s *Session, exec *operator.Execution, passed []core.StepExecution, written []operator.Target, notices []operator.Notice) (*operator.Execution, error) {
	view, err := s.Service.Summary(ctx, operator.SummaryRequest{Execution: exec.ID, Passed: passed})
	if err != nil {
		return exec, err
	}
	view.Actions = exec.Actions // from the process that ran the job and knows the limits of its steps
	return &view.Execution, c.printSummary(view, written, notices)
}

func (c runCommands) printSummary(e *operator.ExecutionView, written []operator.Target, notices []operator.Notice) error {
	if c.env.format == formatJSON {
		r := c.env.pageRecord(e)
		r.Targets, r.Notices = written, notices
		return c.env.printJSON(r)
	}
	var b strings.Builder
	b.WriteString(headline(e.Execution) + "\n")
	if len(e.Steps) > 0 {
		b.WriteString("\n" + stepTable(e.Steps, e.ID))
	}
	for _, step := range e.Steps {
		if step.Partitions != nil {
			b.WriteString("\n" + c.env.partitionText(step, e.ID, false))
		}
	}
	if len(written) > 0 {
		b.WriteString("\n" + c.targetText(written))
	}
	b.WriteString(c.env.skipsLine(e))
	return c.env.print(b.String())
}

func headline(e operator.Execution) string {
	text := fmt.Sprintf("job %s, execution %d", e.JobName, e.ID)
	if e.Attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", e.Attempt)
	}
	text += ": " + statusText(e.Status)
	if e.ExitCode != "" && e.ExitCode != string(e.Status) {
		text += ", exit " + e.ExitCode
	}
	if !e.StartedAt.IsZero() { // it may have taken less than a millisecond
		text += " in " + humanize.Seconds(e.Duration)
	}
	return text
}

func stepTable(steps []operator.StepView, current core.JobExecutionID) string {
	columns := []column{
		{title: "step"}, {title: "status"}, {title: "read", right: true}, {title: "written", right: true},
		{title: "filtered", right: true}, {title: "skipped", right: true}, {title: "commits", right: true},
		{title: "duration", right: true}, {title: "rows/s", right: true},
	}
	var rows [][]string
	for _, s := range steps {
		perSecond := "-"
		if s.RowsPerSecond > 0 {
			perSecond = humanize.Count(int64(s.RowsPerSecond))
		}
		name := s.Step
		if s.Execution != current {
			name += fmt.Sprintf(" (execution %d)", s.Execution)
		}
		if s.Rounds > 1 {
			name += fmt.Sprintf(" (%d times)", s.Rounds)
		}
		rows = append(rows, []string{name, wording.StatusAndExit(s.Status, s.Exit), wording.Read(&s), humanize.Count(s.Written), humanize.Count(s.Filtered),
			humanize.Count(s.Skipped), humanize.Count(s.Commits), humanize.Seconds(s.Duration), perSecond})
	}
	return renderTable(columns, rows)
}

func (c runCommands) targetText(list []operator.Target) string {
	var b strings.Builder
	for _, t := range list {
		b.WriteString(t.Step + ": " + t.Writer + " " + t.Target)
		if t.Database != "" {
			b.WriteString(" in " + c.env.databaseText(t.Database))
		}
		b.WriteString("\n")
	}
	return b.String()
}
