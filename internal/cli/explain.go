package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (c showCommands) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain EXECUTION",
		Short: "Explain an execution: why it ended so, what is committed, what a restart does",
		Long: `Says in plain English why an execution ended as it did, or what it is doing: which
step and item made it so, what is committed, what was skipped, what was decided,
what a restart will do or why there is none, and the commands for it.

It reads the history only, and the job file as it was when the execution began.`,
		Example:           "  " + c.env.app.Name + " explain 12",
		Args:              oneExecution,
		ValidArgsFunction: c.env.completeExecution,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			return c.explainExecution(cmd.Context(), id)
		},
	}
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c showCommands) explainExecution(ctx context.Context, id core.JobExecutionID) error {
	var e *operator.Explanation
	err := c.env.view(ctx, id, func(s *Session) (err error) {
		e, err = s.Service.Explain(ctx, operator.ExplainRequest{Execution: id})
		return err
	})
	if err != nil {
		return err
	}
	r := explanationRecord{Explanation: e, Commands: c.explainCommands(e), Text: explanationText(e)}
	if c.env.format == formatJSON {
		return c.env.printJSON(r)
	}
	return c.env.print(r.text())
}

// explanationRecord is the JSON form of an explanation: with the commands, and in words.
type explanationRecord struct {
	*operator.Explanation
	Commands []commandLine `json:"commands"`
	Text     []string      `json:"text"` // paragraphs
}

type commandLine struct {
	To      string `json:"to"`
	Command string `json:"command"`
}

// text formats the explanation for people: paragraphs, then the commands.
func (r explanationRecord) text() string {
	var b strings.Builder
	b.WriteString(strings.Join(r.Text, "\n"))
	width := 0
	for _, c := range r.Commands {
		width = max(width, len(c.To))
	}
	if len(r.Commands) > 0 {
		b.WriteString("\n")
	}
	for _, c := range r.Commands {
		fmt.Fprintf(&b, "  %-*s  %s\n", width+1, c.To+":", c.Command)
	}
	return b.String()
}

func (c showCommands) explainCommands(e *operator.Explanation) []commandLine {
	lines := []commandLine{}
	for _, a := range e.Actions {
		t := c.env.actionText(a)
		if t.explained == "" {
			continue
		}
		if a.Kind == refusal.ActRedrive && a.Execution == e.RedriveOf {
			t.explained = "restart it"
		}
		if t.line == "" {
			t.line = c.env.command(t.words...)
		}
		lines = append(lines, commandLine{t.explained, t.line})
	}
	if slices.ContainsFunc(e.Steps, func(s operator.StepView) bool { return s.Partitions != nil && hasMore(s.Partitions) }) {
		lines = append(lines, commandLine{"all partitions", c.env.command("show", idText(e.Execution), "--partitions")})
	}
	return lines
}

// hasMore reports whether there are incomplete partitions that the text does not name.
func hasMore(ps *operator.PartitionsView) bool {
	return ps.Total-ps.Statuses[core.StatusCompleted] > maxNames
}
