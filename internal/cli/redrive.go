package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
)

func (c skipsCommands) redriveCommand() *cobra.Command {
	var req operator.RedriveRequest
	var from string
	cmd := &cobra.Command{
		Use:   "redrive EXECUTION [NAME=VALUE ...]",
		Short: "Run the skipped items of an execution through the same step again",
		Long: `Runs the remaining skipped items of EXECUTION through the processors and writers of
their step, with the execution's parameters. NAME=VALUE changes one of them, and
NAME=@FILE gives a secret one. No other step runs. A redrive is an execution of its
own, which can be redriven again if it fails; "show" of each names the other. An item
that is skipped again remains. The items of all partitions of a step are run. A step
that writes a file or refills a table must be COMPLETED: restart it first.

The job file is read from its former path, from --file, or, if it is gone, from the
history. With --from only the items of that file are redriven, as they are written
there (see "skips export").`,
		Example: "  " + c.env.app.Name + " skips redrive 12\n  " + c.env.app.Name + " skips redrive 12 --from skipped.jsonl",
		Args: func(cmd *cobra.Command, args []string) error {
			return oneExecution(cmd, args[:min(1, len(args))])
		},
		ValidArgsFunction: c.env.completeExecution,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if req.Execution, err = parseExecution(args[0]); err != nil {
				return err
			}
			return c.redrive(cmd.Context(), req, from, args[1:])
		},
	}
	f := cmd.Flags()
	f.StringVar(&req.Step, "step", "", "the step with this `NAME` (default: the only one with skipped items)")
	f.StringVar(&from, "from", "", "an edited export: only its items, as they are in `FILE`")
	f.StringVar(&req.File, "file", "", "the job `FILE` (default: the one that the execution was started with)")
	addReasonFlag(c.env, cmd)
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c skipsCommands) redrive(ctx context.Context, req operator.RedriveRequest, from string, words []string) (err error) {
	if from != "" {
		if req.Edited, err = readSkips(from); err != nil {
			return err
		}
	}
	if req.Params, err = parseParameters(words); err != nil {
		return err
	}
	req.Folder, req.Given = c.env.dir, readSecrets
	return c.env.aboutExecution(req.Execution, func() error {
		return runCommands(c).runToEnd(ctx, func(ctx context.Context, s *operator.Service, hooks operator.Hooks) (*operator.Execution, error) {
			req.Hooks = hooks
			running, err := s.Redrive(ctx, req)
			if err != nil {
				return nil, err
			}
			return running.Follow(ctx, hooks.Stop)
		})
	})
}

const maxNamed = 5

func (c runCommands) logNotRedriven(ctx context.Context, n operator.Notice) {
	for _, item := range n.Items[:min(len(n.Items), maxNamed)] {
		c.env.log.WarnContext(ctx, "not redriven: "+item)
	}
	how := c.env.words().Hint(operator.Action{Kind: refusal.ActExport, Execution: n.Execution}).Text
	c.env.log.WarnContext(ctx, humanize.Plural(len(n.Items), "skipped item")+" cannot be redriven as stored", "how", how)
}
