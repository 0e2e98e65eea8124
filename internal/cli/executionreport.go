package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (c showCommands) reportCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "report EXECUTION",
		Short: "Write an execution as one page, for a ticket or an auditor",
		Long: `Writes the console's pages of an execution into one file of HTML without a
script or a link to elsewhere: why it ended, the flow, steps, skipped items, log,
job file and audit, with the same words. Secrets are masked.`,
		Example:           "  " + c.env.app.Name + " report 12 --out report.html",
		Args:              oneExecution,
		ValidArgsFunction: c.env.completeExecution,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			return c.report(cmd.Context(), id, out)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "the file; without it the report goes to the standard output")
	return cmd
}

func (c showCommands) report(ctx context.Context, id core.JobExecutionID, out string) error {
	var text []byte
	err := c.env.view(ctx, id, func(s *Session) (err error) {
		text, err = console.Report(ctx, console.Config{
			Service: s.Service, Jobs: &catalog.Catalog{}, Tasks: s.Tasks, Mask: c.env.settings.Secrets.Values, MaskJSON: c.env.settings.Secrets.JSON, Log: c.env.log,
			Commands: wording.Commands{Program: c.env.app.Name},
		}, id)
		return err
	})
	switch {
	case err != nil:
		return err
	case out == "":
		return c.env.print(string(text))
	}
	const mode = 0o600 // it may have data of the job
	return os.WriteFile(out, text, mode)
}
