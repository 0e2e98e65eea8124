package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/wording"
)

func (c definitionsCommands) timeRunCommand() *cobra.Command {
	var req runtime.TimeRunRequest
	cmd := &cobra.Command{
		Use:   "run JOB",
		Short: "Run a scheduled job now, or for a given time",
		Long: `Submits the task that the schedule would submit for the time, with its parameters, for
workers. Each time has one task: if it has one already, nothing is submitted, and a worker
that comes to this time later submits none. The schedule need not be due at the time, and
may be disabled. With "overlap: forbid" it is refused while a run is not over.`,
		Example: "  " + c.env.app.Name + " definitions run nightly --time 2026-11-27T02:30",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Job = args[0]
			return c.runTime(cmd.Context(), req)
		},
	}
	f := cmd.Flags()
	f.StringVar(&req.Time, "time", "", "the `TIME`: local in the schedule's zone, or with its offset (default now)")
	f.BoolVar(&req.DryRun, "dry-run", false, "only show the run, and the task that the time has")
	f.StringVar(&req.By.Reason, "reason", "", "reason for the audit: a `TEXT`")
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c definitionsCommands) runTime(ctx context.Context, req runtime.TimeRunRequest) error {
	if err := c.env.configure(); err != nil {
		return err
	}
	var run *taskports.TimeRun
	err := c.env.withSession(ctx, c.env.observer(), func(s *Session) (err error) {
		run, err = s.Tasks.RunTime(ctx, req)
		return c.env.refusal(err)
	})
	if err != nil {
		return err
	}
	for _, w := range run.Warnings {
		c.env.log.WarnContext(ctx, w)
	}
	if c.env.format == formatJSON {
		return c.env.printJSON(run)
	}
	return c.env.print(timeRunText(run))
}

func timeRunText(run *taskports.TimeRun) string {
	text := ""
	if run.Applied {
		text = fmt.Sprintf("task %d is submitted\n", run.ID)
	}
	return text + strings.Join(wording.TimeRun(run), "\n") + "\n"
}
