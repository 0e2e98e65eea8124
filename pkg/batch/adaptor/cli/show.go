package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (p *program) showCommand() *cobra.Command {
	var definition bool
	cmd := &cobra.Command{
		Use:               "show EXECUTION",
		Short:             "Show an execution: parameters, steps, errors, and how to go on",
		Example:           "  " + p.app.Name + " show 12",
		Args:              oneExecution,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			return p.show(cmd.Context(), id, definition)
		},
	}
	cmd.Flags().BoolVar(&definition, "definition", false, "print the job file as it was when the execution began")
	p.addFormatFlag(cmd)
	return cmd
}

func (p *program) show(ctx context.Context, id core.JobExecutionID, definition bool) error {
	if err := p.configure(); err != nil {
		return err
	}
	var steps []core.StepExecution
	var redrives []core.JobExecution
	exec, err := p.execution(ctx, id, func(s *Session) (err error) {
		if steps, err = s.Repository.Steps(ctx, id); err != nil {
			return fmt.Errorf("read the steps of execution %d: %w", id, err)
		}
		redrives, err = s.Repository.Executions(ctx, core.ExecutionFilter{RedriveOf: id, Limit: mostRedrives})
		return err
	})
	switch {
	case err != nil:
		return err
	case definition:
		return p.print(exec.Definition.Text)
	case p.format == formatJSON:
		r := p.executionRecord(*exec)
		r.Database = p.databaseText(p.settings.Repository.Database)
		for _, s := range steps {
			r.Steps = append(r.Steps, p.stepRecord(s))
		}
		for _, e := range redrives {
			r.RedrivenBy = append(r.RedrivenBy, int64(e.ID))
		}
		return p.printJSON(r)
	}
	return p.print(p.executionPage(*exec, steps, redrives))
}

// mostRedrives is how many redrives of an execution are named.
const mostRedrives = 100

// executionPage is everything about one execution, for people.
func (p *program) executionPage(e core.JobExecution, steps []core.StepExecution, redrives []core.JobExecution) string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-12s%s\n", name, text)
		}
	}
	b.WriteString(p.headline(e) + "\n\n")
	line("instance", fmt.Sprint(e.InstanceID))
	line("file", e.Definition.Path)
	if e.RedriveOf != 0 {
		line("redrive of", "execution "+idText(e.RedriveOf))
	}
	line("redriven by", redrivesText(redrives))
	line("created", timeText(e.CreatedAt))
	line("started", timeText(e.StartedAt))
	line("ended", timeText(e.EndedAt))
	if e.Status.IsRunning() {
		line("owner", fmt.Sprintf("process %d on %s, lease until %s", e.Owner.PID, e.Owner.Host, timeText(e.LeaseUntil)))
		if e.StopRequested {
			line("stop", "requested")
		}
	}
	line("error", oneLine(e.Error))
	if e.Params.Len() > 0 {
		b.WriteString("\n" + parameterTable(e.Params))
	}
	if len(steps) > 0 {
		b.WriteString("\n" + stepTable(steps, e.ID, p.now()))
	}
	for _, s := range steps {
		if s.Error != "" {
			fmt.Fprintf(&b, "\n%s: %s\n", s.Name, oneLine(s.Error))
		}
		if len(s.Out) > 0 {
			fmt.Fprintf(&b, "\n%s: %s\n", s.Name, outText(s.Out))
		}
	}
	b.WriteString(p.skipsLine(e, steps))
	if restartable(e.Status) {
		b.WriteString("\nrestart it:  " + p.restartLine(e, "FILE") + "\n")
	}
	return b.String()
}

func parameterTable(ps core.Parameters) string {
	var rows [][]string
	for _, q := range ps.All() {
		text, err := q.Canonical()
		if err != nil {
			text = fmt.Sprint(q.Value) // cannot be: NewParameters has checked it
		}
		mark := "yes"
		if !q.Identifying {
			mark = "no"
		}
		rows = append(rows, []string{q.Name, string(q.Type), mark, text})
	}
	return renderTable([]column{{title: "parameter"}, {title: "type"}, {title: "identifying"}, {title: "value"}}, rows)
}

// redrivesText names executions, oldest first.
func redrivesText(redrives []core.JobExecution) string {
	var words []string
	for _, e := range slices.Backward(redrives) {
		words = append(words, fmt.Sprintf("execution %d (%s)", e.ID, e.Status))
	}
	return joinWords(words)
}

// skipsLine is how to see what the execution skipped, if it did.
func (p *program) skipsLine(e core.JobExecution, steps []core.StepExecution) string {
	for _, s := range steps {
		if s.JobExecutionID == e.ID && s.Counters.Skips() > 0 {
			return "\nskipped items:  " + p.command("skips", "list", idText(e.ID)) + "\n"
		}
	}
	return ""
}

// outText writes the named results of a tasklet, sorted by name.
func outText(out map[string]any) string {
	var words []string
	for _, name := range sortedKeys(out) {
		words = append(words, fmt.Sprintf("%s=%v", name, out[name]))
	}
	return clip(strings.Join(words, " "), 2000)
}
