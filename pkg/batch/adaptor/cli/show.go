package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/operator"
)

// showing are the flags of show.
type showing struct{ definition, partitions, audit bool }

func (p *program) showCommand() *cobra.Command {
	var o showing
	cmd := &cobra.Command{
		Use:               "show EXECUTION",
		Short:             "Show an execution: parameters, steps, gates, decisions, errors, and how to go on",
		Example:           "  " + p.app.Name + " show 12",
		Args:              oneExecution,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			return p.show(cmd.Context(), operator.ShowRequest{Execution: id, Partitions: o.partitions, Audit: o.audit, Definition: o.definition})
		},
	}
	cmd.Flags().BoolVar(&o.definition, "definition", false, "print the job file as it was when the execution began")
	cmd.Flags().BoolVar(&o.partitions, "partitions", false, "show every partition, not only those that failed")
	cmd.Flags().BoolVar(&o.audit, "audit", false, "show every change of a status, and who asked for it")
	cmd.MarkFlagsMutuallyExclusive("definition", "partitions")
	cmd.MarkFlagsMutuallyExclusive("definition", "audit")
	p.addFormatFlag(cmd)
	return cmd
}

func (p *program) show(ctx context.Context, req operator.ShowRequest) error {
	var shown *operator.ExecutionView
	err := p.view(ctx, req.Execution, func(s *Session) (err error) {
		shown, err = s.Service.Show(ctx, req)
		return err
	})
	switch {
	case err != nil:
		return err
	case req.Definition:
		return p.print(shown.Definition)
	case p.format == formatJSON:
		return p.printJSON(p.pageRecord(shown))
	}
	return p.print(p.executionPage(shown, req.Partitions))
}

// view asks the service about an execution; one that does not exist is a matter of
// usage.
func (p *program) view(ctx context.Context, id core.JobExecutionID, ask func(s *Session) error) error {
	if err := p.configure(); err != nil {
		return err
	}
	if p.absent(p.settings.Repository.Database) {
		return p.notFound(core.ErrNotFound, id)
	}
	return p.withSession(ctx, p.quiet(), func(s *Session) error { return p.notFound(ask(s), id) })
}

// executionPage is the page for people.
func (p *program) executionPage(e *operator.ExecutionView, allPartitions bool) string {
	var b strings.Builder
	b.WriteString(headline(e.Execution) + "\n\n")
	writeFacts(&b, e)
	if e.Params.Len() > 0 {
		b.WriteString("\n" + parameterTable(e.Params.Parameters))
	}
	if len(e.Steps) > 0 {
		b.WriteString("\n" + stepTable(e.Steps, e.ID))
	}
	for _, s := range e.Steps {
		p.writeStep(&b, s, e.ID, allPartitions)
	}
	if len(e.Decisions) > 0 {
		b.WriteString("\n" + decisionTable(e.Decisions))
	}
	if len(e.Audit) > 0 {
		b.WriteString("\n" + auditTable(e.Audit))
	}
	b.WriteString(p.skipsLine(e))
	if hints := p.pageHints(e); len(hints) > 0 {
		b.WriteString("\n" + strings.Join(hints, "\n") + "\n")
	}
	return b.String()
}

func writeFacts(b *strings.Builder, e *operator.ExecutionView) {
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(b, "%-12s%s\n", name, text)
		}
	}
	line("instance", fmt.Sprint(e.InstanceID))
	line("file", e.File)
	if e.RedriveOf != 0 {
		line("redrive of", "execution "+idText(e.RedriveOf))
	}
	if e.Parent != 0 {
		line("child of", "execution "+idText(e.Parent))
	}
	line("redriven by", redrivesText(e.Redrives))
	line("created", timeText(e.CreatedAt))
	line("started", timeText(e.StartedAt))
	line("ended", timeText(e.EndedAt))
	if e.Owner != nil {
		line("owner", fmt.Sprintf("process %d on %s, lease until %s", e.Owner.PID, e.Owner.Host, timeText(e.Owner.LeaseUntil)))
		if e.StopRequested {
			line("stop", "requested")
		}
	}
	line("error", oneLine(e.Error))
	if !strings.Contains(e.Error, e.Gate) {
		line("expect", oneLine(e.Gate))
	}
}

// writeStep writes what the table of steps has no column for.
func (p *program) writeStep(b *strings.Builder, s operator.StepView, current core.JobExecutionID, allPartitions bool) {
	if s.Error != "" {
		fmt.Fprintf(b, "\n%s: %s\n", s.Step, oneLine(s.Error))
	}
	if s.Gate != "" && !strings.Contains(s.Error, s.Gate) {
		fmt.Fprintf(b, "\n%s: expect: %s\n", s.Step, oneLine(s.Gate))
	}
	if s.Child != 0 {
		fmt.Fprintf(b, "\n%s: execution %d (%v):  %s\n", s.Step, s.Child, s.Out["status"], p.command("show", idText(s.Child)))
	} else if len(s.Out) > 0 {
		fmt.Fprintf(b, "\n%s: %s\n", s.Step, outText(s.Out))
	}
	if s.Partitions != nil {
		b.WriteString("\n" + p.partitionText(s, current, allPartitions))
	}
}

// pageHints are the next commands.
func (p *program) pageHints(e *operator.ExecutionView) []string {
	return hintLines(p.ways(e.Execution))
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
func redrivesText(redrives []operator.Redrive) string {
	var words []string
	for _, e := range slices.Backward(redrives) {
		words = append(words, fmt.Sprintf("execution %d (%s)", e.Execution, e.Status))
	}
	return joinWords(words)
}

// skipsLine is how to see what the execution skipped, if it did.
func (p *program) skipsLine(e *operator.ExecutionView) string {
	for _, s := range e.Steps {
		if s.Execution == e.ID && s.Skipped > 0 {
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
