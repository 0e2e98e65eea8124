package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/wording"
)

func (c skipsCommands) redriveCommand() *cobra.Command {
	var req operator.RedriveRequest
	var from string
	var dry bool
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
			return c.redrive(cmd.Context(), req, from, args[1:], dry)
		},
	}
	f := cmd.Flags()
	f.StringVar(&req.Step, "step", "", "the step with this `NAME` (default: the only one with skipped items)")
	f.StringVar(&from, "from", "", "an edited export: only its items, as they are in `FILE`")
	f.StringVar(&req.File, "file", "", "the job `FILE` (default: the one that the execution was started with)")
	addReasonFlag(c.env, cmd)
	f.BoolVar(&dry, "dry-run", false, "write nothing: say what would become of each item, and what is still wrong with it")
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c skipsCommands) redrive(ctx context.Context, req operator.RedriveRequest, from string, words []string, dry bool) (err error) {
	if from != "" {
		if req.Edited, err = readSkips(from); err != nil {
			return err
		}
	}
	if req.Params, err = parseParameters(words); err != nil {
		return err
	}
	req.Folder, req.Given = c.env.dir, readSecrets
	if dry {
		return c.planRedrive(ctx, req)
	}
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

const maxChecked = 5_000

func (c skipsCommands) planRedrive(ctx context.Context, req operator.RedriveRequest) error {
	if err := c.env.configure(); err != nil {
		return err
	}
	done, err := dryRunCommand(c).readOnly()
	if err != nil {
		return err
	}
	defer done()
	var plan *operator.RedrivePlan
	err = c.env.view(ctx, req.Execution, func(s *Session) (err error) {
		ask := operator.RedrivePlanRequest{RedriveRequest: req}
		if req.Edited == nil {
			ask.Limit = maxChecked
		}
		plan, err = s.Service.PlanRedrive(ctx, ask)
		return err
	})
	if err != nil {
		return err
	}
	if c.env.format == formatJSON {
		return c.env.printJSON(plan)
	}
	var rows [][]string
	for _, i := range plan.Items {
		text := string(i.Item)
		if i.Error != "" {
			text = i.Error
		}
		rows = append(rows, []string{strconv.FormatInt(i.ID, 10), i.Outcome, wording.Fault(i.Fault), humanize.Clip(humanize.OneLine(text), 100)})
	}
	text := renderTable([]column{{title: "id", right: true}, {title: "outcome"}, {title: "field"}, {title: "item or error"}}, rows) + wording.RedriveSum(plan) + "\n"
	if plan.Next != 0 {
		text += "More items are left; these are the first.\n"
	}
	return c.env.print(text)
}

const maxNamed = 5

func (c runCommands) logNotRedriven(ctx context.Context, n operator.Notice) {
	for _, item := range n.Items[:min(len(n.Items), maxNamed)] {
		c.env.log.WarnContext(ctx, "not redriven: "+item)
	}
	how := c.env.words().Hint(operator.Action{Kind: refusal.ActExport, Execution: n.Execution}).Text
	c.env.log.WarnContext(ctx, humanize.Plural(len(n.Items), "skipped item")+" cannot be redriven as stored", "how", how)
}
