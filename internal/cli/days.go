package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (c showCommands) daysCommand() *cobra.Command {
	var req operator.CalendarRequest
	cmd := &cobra.Command{
		Use:   "days JOB",
		Short: "Show for each day or number of a range how a job ran",
		Long: `Shows for each value of an identifying parameter of type date or int how the newest
execution of its instance ended, and which values never ran. Without a range it shows
the month of the newest execution. "backfill" runs missing ones.`,
		Example: "  " + c.env.app.Name + " days nightly --from 2026-11-01 --to 2026-11-20",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Job, req.File = args[0], c.env.app.Files[args[0]]
			return c.days(cmd.Context(), req)
		},
	}
	f := cmd.Flags()
	f.StringVar(&req.Param, "param", "", "the `NAME` of the parameter (default the first one)")
	f.StringVar(&req.From, "from", "", "the first `VALUE`")
	f.StringVar(&req.To, "to", "", "the last `VALUE`")
	f.StringVar(&req.Month, "month", "", "a `MONTH` in place of a range, such as 2026-11")
	cmd.MarkFlagsMutuallyExclusive("month", "from")
	cmd.MarkFlagsMutuallyExclusive("month", "to")
	c.env.addListFormatFlag(cmd)
	return cmd
}

func (c showCommands) days(ctx context.Context, req operator.CalendarRequest) error {
	found := &operator.JobCalendar{Job: req.Job, Params: []string{}, Days: []operator.CalendarDay{}, Missing: []string{}}
	err := c.env.read(ctx, func(s *Session) (err error) {
		found, err = s.Service.Calendar(ctx, req)
		return wrongFlag(err)
	})
	if err != nil {
		return err
	}
	columns := []column{{title: found.Param}, {title: "status"}, {title: "execution", right: true}, {title: "attempts", right: true}, {title: "instances", right: true}}
	rows, done := make([][]string, 0, len(found.Days)), 0
	for i := range found.Days {
		d := &found.Days[i]
		row := []string{d.Value, dayText(d), "", "", strconv.Itoa(d.Instances)}
		if d.Execution != 0 {
			row[2], row[3] = wording.ID(d.Execution), strconv.Itoa(d.Attempts)
		}
		if d.Status == core.StatusCompleted {
			done++
		}
		rows = append(rows, row)
	}
	switch {
	case c.env.format == formatJSON:
		return c.env.printJSON(found)
	case c.env.format == formatCSV:
		return c.env.printCSV([]string{"value", "status", "execution", "attempts", "instances"}, rows)
	case len(rows) == 0:
		return usagef("job %s has no identifying parameter of type date: --param, --from and --to take one of type int", req.Job)
	}
	missing := len(found.Missing)
	said := []string{strconv.Itoa(done) + " complete", strconv.Itoa(len(rows)-done-missing) + " not complete", strconv.Itoa(missing) + " never run"}
	return c.env.print(renderTable(columns, rows) + humanize.Plural(len(rows), "value") + ": " + strings.Join(said, ", ") + "\n")
}

func dayText(d *operator.CalendarDay) string {
	switch {
	case d.Execution == 0 && !d.Partial:
		return "never run"
	case d.Partial:
		return strings.TrimSpace(string(d.Status) + " (perhaps more)")
	}
	return string(d.Status)
}
