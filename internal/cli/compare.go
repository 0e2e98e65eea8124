package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
)

func (c showCommands) compareCommand() *cobra.Command {
	var with string
	cmd := &cobra.Command{
		Use:   "compare EXECUTION",
		Short: "Compare an execution with another one of its job",
		Long: `Shows the differences between two executions of a job: duration, parameters, job
file, the counters, durations and rates of each step with the change in percent,
decisions, gates and skipped items. Counters include the attempts that a step
continues; durations and rates do not.`,
		Example: "  " + c.env.app.Name + " compare 12\n" +
			"  " + c.env.app.Name + " compare 12 --with typical",
		Args:              oneExecution,
		ValidArgsFunction: c.env.completeExecution,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			return c.compare(cmd.Context(), operator.CompareRequest{Execution: id, With: with})
		},
	}
	cmd.Flags().StringVar(&with, "with", operator.WithPrevious, "the number of an execution of the same job, previous (the one before it), or typical (the medians of the last ten that completed)")
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c showCommands) compare(ctx context.Context, req operator.CompareRequest) error {
	var found *operator.Comparison
	err := c.env.view(ctx, req.Execution, func(s *Session) (err error) {
		found, err = s.Service.Compare(ctx, req)
		return err
	})
	switch {
	case err != nil:
		return err
	case c.env.format == formatJSON:
		return c.env.printJSON(found)
	}
	var rows [][]string
	for _, s := range found.Steps {
		name := s.Step
		switch {
		case s.OnlyHere:
			name += " (new)"
		case s.OnlyThere:
			name += " (not run)"
		}
		rows = append(rows, []string{
			name, wording.Figure(s.Read), wording.Figure(s.Written), wording.Figure(s.Filtered), wording.Figure(s.Skipped),
			wording.DurationFigure(s.Duration), wording.Figure(s.Rate),
		})
	}
	columns := []column{{"STEP", false}, {"READ", true}, {"WRITTEN", true}, {"FILTERED", true}, {"SKIPPED", true}, {"DURATION", true}, {"ROWS/S", true}}
	var b strings.Builder
	b.WriteString(wording.Compared(found) + "\n\n" + renderTable(columns, rows))
	if lines := wording.Differences(found); len(lines) > 0 {
		b.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	}
	if found.Diff != "" {
		b.WriteString("\n" + found.Diff)
	}
	return c.env.print(b.String())
}
