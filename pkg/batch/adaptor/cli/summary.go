package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/operator"
)

// summarize prints what an execution did: one line per step, those that an
// earlier execution completed included, and where the rows went. It returns the
// execution as the database has it, which is right even where this process lost
// it to another one.
func (p *program) summarize(ctx context.Context, s *Session, exec *operator.Execution, passed []core.StepExecution, written []operator.Target) (*operator.Execution, error) {
	stored, err := s.Repository.Execution(ctx, exec.ID)
	if err != nil {
		return exec, fmt.Errorf("read execution %d: %w", exec.ID, err)
	}
	now := *exec
	now.Status, now.ExitCode, now.Error = stored.Status, stored.ExitCode, stored.Error
	return &now, p.printSummary(ctx, s, stored, passed, written)
}

func (p *program) printSummary(ctx context.Context, s *Session, exec *core.JobExecution, passed []core.StepExecution, written []operator.Target) error {
	steps, err := s.Repository.Steps(ctx, exec.ID)
	if err != nil {
		return fmt.Errorf("read the steps of execution %d: %w", exec.ID, err)
	}
	steps, parts := splitPartitions(slices.Concat(passed, steps))
	if p.format == formatJSON {
		r := p.executionRecord(*exec)
		r.Database, r.Targets = p.databaseText(p.settings.Repository.Database), written
		r.Steps = p.stepRecords(steps, parts, false)
		return p.printJSON(r)
	}
	var b strings.Builder
	b.WriteString(p.headline(*exec) + "\n")
	if len(steps) > 0 {
		b.WriteString("\n" + stepTable(steps, exec.ID, p.now()))
	}
	for _, step := range steps {
		if ps, ok := parts[step.ID]; ok {
			b.WriteString("\n" + p.partitionText(ps, *exec, false))
		}
	}
	if len(written) > 0 {
		b.WriteString("\n" + p.targetText(written))
	}
	b.WriteString(p.skipsLine(*exec, steps))
	return p.print(b.String())
}

// headline is an execution in one line.
func headline(e operator.Execution) string {
	text := fmt.Sprintf("job %s, execution %d", e.JobName, e.ID)
	if e.Attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", e.Attempt)
	}
	text += ": " + statusText(e.Status)
	if e.ExitCode != "" && e.ExitCode != string(e.Status) {
		text += ", exit " + e.ExitCode
	}
	if e.Duration > 0 {
		text += " in " + durationText(time.Duration(e.Duration*float64(time.Second)))
	}
	return text
}

// headline is an execution in one line.
func (p *program) headline(e core.JobExecution) string {
	text := fmt.Sprintf("job %s, execution %d", e.JobName, e.ID)
	if e.Attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", e.Attempt)
	}
	text += ": " + statusText(e.Status)
	if e.ExitCode != "" && e.ExitCode != string(e.Status) {
		text += ", exit " + e.ExitCode
	}
	if took := elapsed(e.StartedAt, e.EndedAt, p.now()); took > 0 {
		text += " in " + durationText(took)
	}
	return text
}

// stepTable shows steps with what they did; one that an earlier execution did is
// marked.
func stepTable(steps []core.StepExecution, current core.JobExecutionID, now time.Time) string {
	columns := []column{
		{title: "step"}, {title: "status"}, {title: "read", right: true}, {title: "written", right: true},
		{title: "filtered", right: true}, {title: "skipped", right: true}, {title: "commits", right: true},
		{title: "duration", right: true}, {title: "rows/s", right: true},
	}
	var rows [][]string
	for _, s := range steps {
		c, took := s.Counters, elapsed(s.StartedAt, s.EndedAt, now)
		perSecond := "-"
		if rate := rowsPerSecond(c, took); rate > 0 {
			perSecond = count(int64(rate))
		}
		name := s.Name
		if s.JobExecutionID != current {
			name += fmt.Sprintf(" (execution %d)", s.JobExecutionID)
		}
		rows = append(rows, []string{name, statusAndExit(s.Status, s.ExitCode), count(c.Read), count(c.Write), count(c.Filter),
			count(c.Skips()), count(c.Commit), durationText(took), perSecond})
	}
	return renderTable(columns, rows)
}

// statusAndExit adds an exit code that says more than the status.
func statusAndExit(s core.Status, exit string) string {
	if exit == "" || exit == string(s) {
		return string(s)
	}
	return string(s) + " " + exit
}
