package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/wording"
)

type timeCommands struct{ env *environment }

func (c timeCommands) partsCommand() *cobra.Command {
	var req operator.PartsRequest
	var order string
	cmd := &cobra.Command{
		Use:   "parts EXECUTION",
		Short: "List the parts of a step: partitions, or branches of a split on workers",
		Long: `Lists the parts of a partitioned step, or the branches of a split on workers, in
pages. Each has the worker or process that has it, or had it last.`,
		Example: "  " + c.env.app.Name + " parts 12 --step load --left\n" +
			"  " + c.env.app.Name + " parts 12 --order duration --limit 5",
		Args:              oneExecution,
		ValidArgsFunction: c.env.completeExecution,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			if req.Limit < 1 {
				return usagef("--limit %d: at least 1", req.Limit)
			}
			req.Execution, req.Order = id, ports.PartOrder(order)
			return c.parts(cmd.Context(), req)
		},
	}
	f := cmd.Flags()
	f.StringVar(&req.Step, "step", "", "the `NAME` of a step, or the number of a step execution (default: the last step with parts)")
	f.StringVar(&order, "order", string(ports.PartsByNumber), "number, duration (the longest first), or status (the failed first, the complete last)")
	completeFlag(cmd, "order", string(ports.PartsByNumber), string(ports.PartsByDuration), string(ports.PartsByStatus))
	f.BoolVar(&req.Left, "left", false, "only parts that are not complete")
	f.StringVar(&req.After, "after", "", "only parts after this `PLACE`: the next page")
	f.IntVar(&req.Limit, "limit", 50, "at most `N` parts")
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c timeCommands) parts(ctx context.Context, req operator.PartsRequest) error {
	var page *operator.PartPage
	err := c.env.view(ctx, req.Execution, func(s *Session) (err error) {
		page, err = s.Service.Parts(ctx, req)
		return err
	})
	switch {
	case errors.As(err, new(*operator.RequestError)):
		return usage(err)
	case err != nil:
		return err
	case c.env.format == formatJSON:
		return c.env.printJSON(page)
	case page.Step == "":
		c.env.log.InfoContext(ctx, fmt.Sprintf("no step of execution %d has parts", req.Execution))
		return nil
	}
	if err := c.env.print(partPage(page)); err != nil {
		return err
	}
	if page.Next != "" {
		c.env.log.InfoContext(ctx, "there are more: --after "+page.Next)
	}
	return nil
}

func partPage(page *operator.PartPage) string {
	columns := []column{
		{title: "part"}, {title: "status"}, {title: "read", right: true}, {title: "written", right: true}, {title: "filtered", right: true},
		{title: "skipped", right: true}, {title: "started"}, {title: "duration", right: true}, {title: "worker"}, {title: "error"},
	}
	var rows [][]string
	for i := range page.Parts {
		p := &page.Parts[i]
		rows = append(rows, []string{
			p.Step, wording.StatusAndExit(p.Status, p.Exit), wording.Read(&p.StepView), humanize.Count(p.Written), humanize.Count(p.Filtered), humanize.Count(p.Skipped),
			humanize.Time(p.Started), humanize.Seconds(p.Duration), wording.Worker(p.Process, p.WorkerName), humanize.Clip(humanize.OneLine(p.Error), 80),
		})
	}
	var b strings.Builder
	of := operator.PartitionsView{Branches: page.Branches}
	fmt.Fprintf(&b, "%s: %s: %s\n", page.PartedStep.Step, wording.Parts(&of, page.Total), wording.StatusCounts(page.Statuses))
	if len(rows) > 0 {
		b.WriteString("\n" + renderTable(columns, rows))
	}
	if len(page.Others) > 0 {
		words := make([]string, len(page.Others))
		for i, o := range page.Others {
			words[i] = fmt.Sprintf("%s (--step %d)", o.Step, o.ID)
		}
		b.WriteString("\nother steps with parts: " + humanize.Join(humanize.Few(words, 0)) + "\n")
	}
	return b.String()
}
