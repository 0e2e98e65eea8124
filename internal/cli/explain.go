package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (c showCommands) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain EXECUTION",
		Short: "Explain an execution: its cause of failure, committed work, and restart plan",
		Long: `Explains in plain English why an execution ended as it did, or its progress: the
step and the item that decided, the committed work, skipped items, decisions, the
plan of a restart or the reason against one, and the commands to continue.

It reads the history, and the job file as it was when the execution began.`,
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
	r := explanationRecord{Explanation: e, Commands: c.env.words().Explained(e), Text: wording.Explanation(e)}
	if c.env.format == formatJSON {
		return c.env.printJSON(r)
	}
	return c.env.print(wording.Page(r.Text, r.Commands))
}

type explanationRecord struct {
	*operator.Explanation
	Commands []wording.CommandLine `json:"commands"`
	Text     []string              `json:"text"` // paragraphs
}
