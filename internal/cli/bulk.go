package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

type bulkFlags struct {
	listFlags
	request operator.BulkRequest
	dryRun  bool
}

func (c operateCommands) bulkCommand() *cobra.Command {
	b := &bulkFlags{}
	cmd := &cobra.Command{
		Use:   "bulk ACT [EXECUTION ...]",
		Short: "Restart, redrive, stop or abandon many executions",
		Long: `ACT is restart, redrive, stop or abandon. The executions are named, or selected by
the filters of "list", at most 10,000. Each gets a task, and the tasks are a group:
workers execute it, "tasks list --group" shows the result of each, and "tasks cancel
--group" ends the rest. An execution that changes before its task begins refuses it.

--dry-run shows the effect on each execution, or the reason of its refusal.`,
		Example: "  " + c.env.app.Name + " bulk restart --status FAILED --text timeout --dry-run\n" +
			"  " + c.env.app.Name + " bulk restart --status FAILED --text timeout --expect 300 --reason \"the network is back\"",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := b.take(c.env, args); err != nil {
				return err
			}
			return c.bulk(cmd.Context(), b)
		},
	}
	b.addFilters(cmd)
	cmd.Flags().BoolVar(&b.dryRun, "dry-run", false, "only show the effect on each execution")
	cmd.Flags().IntVar(&b.request.Expect, "expect", 0, "do nothing unless `N` executions are selected")
	addReasonFlag(c.env, cmd)
	c.env.addFormatFlag(cmd)
	return cmd
}

func (b *bulkFlags) take(env *environment, args []string) error {
	b.request.Act = args[0]
	for _, text := range args[1:] {
		id, err := parseExecution(text)
		if err != nil {
			return err
		}
		b.request.Executions = append(b.request.Executions, id)
	}
	b.listFlags.request.Limit = 1 // unused
	filter, err := b.check(env.now())
	if filter.Limit = 0; err == nil && (len(b.request.Executions) == 0 || !filter.SelectsAll()) {
		b.request.Filter = &filter
	}
	return err
}

func (c operateCommands) bulk(ctx context.Context, b *bulkFlags) error {
	if err := c.env.configure(); err != nil {
		return err
	}
	return c.env.withSession(ctx, nil, func(s *Session) error {
		if b.dryRun {
			return c.planBulk(ctx, s, b.request)
		}
		sub, err := s.Service.Bulk(ctx, b.request)
		if err != nil {
			return c.bulkRefused(err)
		}
		return taskCommands(c).submitActs(ctx, s, sub)
	})
}

func (c taskCommands) submitActs(ctx context.Context, s *Session, sub task.Submission) error {
	if warning, err := s.Tasks.NoWorker(ctx); err != nil {
		return err
	} else if warning != "" {
		c.env.log.WarnContext(ctx, warning)
	}
	return c.submitted(ctx, s.Tasks, sub, 0)
}

func (c operateCommands) bulkRefused(err error) error { return c.env.refusal(wrongFlag(err)) }

func (c operateCommands) planBulk(ctx context.Context, s *Session, req operator.BulkRequest) error {
	items := []operator.BulkItem{}
	refused := 0
	for after := core.JobExecutionID(0); ; {
		plan, err := s.Service.PlanBulk(ctx, req, after)
		if err != nil {
			return c.bulkRefused(err)
		}
		items = append(items, plan.Items...)
		if after = plan.Next; after == 0 {
			break
		}
	}
	if c.env.format == formatJSON {
		return c.env.printJSON(items)
	}
	columns := []column{{title: "execution", right: true}, {title: "job"}, {title: "status"}, {title: "effect"}}
	rows := make([][]string, 0, len(items))
	for _, item := range items {
		var steps []string
		for _, step := range item.Steps {
			steps = append(steps, string(step.Action)+" "+step.Step)
		}
		effect := req.Act + ": " + strings.Join(steps, ", ")
		if item.Refused != nil {
			refused++
			effect = "refused: " + humanize.OneLine(item.Refused.Error())
		}
		rows = append(rows, []string{wording.ID(item.Execution), item.JobName, string(item.Status), strings.TrimSuffix(effect, ": ")})
	}
	return c.env.print(renderTable(columns, rows) + humanize.Plural(len(items), "execution") + ", " + humanize.Plural(refused, "refusal") + "\n")
}
