package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type overviewCommands struct{ env *environment }

type overviewFlags struct {
	since, window string
	before        int64
	limit         int
}

func (c overviewCommands) overviewCommand() *cobra.Command {
	o := overviewFlags{since: "30d", window: "24h", limit: 20}
	cmd := &cobra.Command{
		Use:   "overview",
		Short: "Show the problems that need a person",
		Long: `Shows the problems that need a person, the most urgent first, each with a command:
executions that lost their process, wait for a worker, run much longer than usual or do
not commit; scheduled runs that are late or were left out; wrong job files; tasks and
events that wait in vain; and executions that failed, were stopped, or left skipped
items. A later attempt, a redrive or an abandon clears them. Then the number of running
executions, and of those that ended.`,
		Example: "  " + c.env.app.Name + " overview\n  " + c.env.app.Name + " overview --since 7d --window 1h",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			req, err := o.request(c.env.now())
			if err != nil {
				return err
			}
			return c.overview(cmd.Context(), req)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.since, "since", o.since, "only ended executions that were made at this `TIME` or later: a date, a time, or how long ago")
	f.StringVar(&o.window, "window", o.window, "the `TIME` in which ended executions are counted")
	f.Int64Var(&o.before, "before", 0, "only ended executions with a smaller number than `EXECUTION`: the next page")
	f.IntVar(&o.limit, "limit", o.limit, "at most `N` ended executions")
	c.env.addFormatFlag(cmd)
	return cmd
}

func (o overviewFlags) request(now time.Time) (req operator.OverviewRequest, err error) {
	if o.limit < 1 || o.limit > operator.MaxOverview {
		return req, usagef("--limit %d: 1 to %d are allowed", o.limit, operator.MaxOverview)
	}
	req.Before, req.Limit = core.JobExecutionID(o.before), o.limit
	if req.Since, err = parseMoment("--since", o.since, now); err != nil {
		return req, err
	}
	req.Window, err = parseAge("--window", o.window)
	return req, err
}

func (c overviewCommands) overview(ctx context.Context, req operator.OverviewRequest) error {
	found := &operator.Overview{At: c.env.now(), Since: req.Since, Needs: []operator.Need{}, Ended: &operator.EndedInWindow{Window: req.Window.Seconds()}}
	err := c.env.read(ctx, func(s *Session) (err error) {
		found, err = s.Service.Overview(ctx, req)
		return err
	})
	if err != nil {
		return err
	}
	wording.Overview(found)
	if c.env.format == formatJSON {
		return c.env.printJSON(found)
	}
	if err := c.env.print(c.overviewText(found)); err != nil {
		return err
	}
	if found.Next != 0 {
		c.env.log.InfoContext(ctx, fmt.Sprintf("there are more: --before %d", found.Next))
	}
	return nil
}

func (c overviewCommands) overviewText(o *operator.Overview) string {
	var b strings.Builder
	if len(o.Needs) == 0 {
		b.WriteString("Nothing needs a person.\n")
	} else {
		var rows [][]string
		for i := range o.Needs {
			n := &o.Needs[i]
			since := "-"
			if !n.Since.IsZero() {
				since = humanize.Time(n.Since)
			}
			rows = append(rows, []string{since, string(n.Reason), n.Text + c.firstAction(n)})
		}
		b.WriteString(renderTable([]column{{title: "since"}, {title: "reason"}, {title: "needs a person"}}, rows))
	}
	if o.Ended == nil {
		return b.String()
	}
	running := humanize.Plural(len(o.Running), "execution")
	if o.MoreRunning {
		running = "More than " + running
	}
	b.WriteString("\n" + running + " running.\n" + wording.Ended(o.Ended) + "\n")
	return b.String()
}

func (c overviewCommands) firstAction(n *operator.Need) string {
	if len(n.Actions) == 0 {
		return ""
	}
	hint := c.env.words().Hint(n.Actions[0])
	return "\n  " + hint.Label + ": " + hint.Text
}

func (c overviewCommands) summaryCommand() *cobra.Command {
	var req operator.JobsRequest
	cmd := &cobra.Command{
		Use:   "summary",
		Short: "Show all jobs with their last executions",
		Long: `Shows the jobs of the history, registered ones and those of this program, by name: the
outcomes of the last 20 executions (newest first: C completed, F failed, S stopped,
U unknown, A abandoned, R running), how many of them completed, median and 95th
percentile of the durations and median of the rows of the last 30 that completed, the
next time of the schedule, and the skipped items of the newest completed one that were
not redriven. Redrives do not count.`,
		Example: "  " + c.env.app.Name + " summary",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.summary(cmd.Context(), req) },
	}
	f := cmd.Flags()
	f.StringVar(&req.Job, "job", "", "only the job with this `NAME`")
	f.StringVar(&req.After, "after", "", "only jobs with a greater name than `JOB`: the next page")
	f.IntVar(&req.Limit, "limit", 0, "at most `N` jobs, up to 1000 (0: 200)")
	c.env.addListFormatFlag(cmd)
	return cmd
}

func (c overviewCommands) summary(ctx context.Context, req operator.JobsRequest) error {
	page := &operator.JobPage{Jobs: []operator.JobSummary{}}
	err := c.env.read(ctx, func(s *Session) (err error) {
		page, err = s.Service.JobSummaries(ctx, req)
		return err
	})
	switch {
	case err != nil:
		return err
	case c.env.format == formatJSON:
		return c.env.printJSON(page)
	case c.env.format == formatCSV:
		return c.env.printCSV([]string{
			"job", "sources", "executions", "success_rate", "median_seconds", "p95_seconds", "median_rows", "next", "paused", "skips_left", "problems",
		}, summaryCSV(page.Jobs))
	case len(page.Jobs) == 0:
		return showCommands(c).noExecutions(ctx, req.Job)
	}
	var rows [][]string
	problems := ""
	for i := range page.Jobs {
		j := &page.Jobs[i]
		rows = append(rows, summaryRow(j))
		for _, p := range j.Problems {
			problems += j.Job + ": " + wording.FileProblem(p) + "\n"
		}
	}
	columns := []column{
		{title: "job"}, {title: "last"}, {title: "completed", right: true}, {title: "median", right: true}, {title: "p95", right: true},
		{title: "rows", right: true}, {title: "next"}, {title: "skips left", right: true},
	}
	text := renderTable(columns, rows)
	if problems != "" {
		text += "\n" + problems
	}
	if err := c.env.print(text); err != nil {
		return err
	}
	if page.Next != "" {
		c.env.log.InfoContext(ctx, "there are more: --after "+humanize.Quote(page.Next))
	}
	return nil
}

func summaryRow(j *operator.JobSummary) []string {
	row := []string{j.Job, runLetters(j.Last), "-", "-", "-", "-", nextText(j), "-"}
	if j.SuccessRate != nil {
		row[2] = strconv.FormatFloat(*j.SuccessRate*100, 'f', 0, 64) + "%"
	}
	if j.Duration != nil {
		row[3], row[4] = humanize.Seconds(j.Duration.Median), cmp.Or(wording.Within(j.Duration, humanize.Seconds), "-")
	}
	if j.Rows != nil {
		row[5] = humanize.Count(int64(j.Rows.Median))
	}
	if j.SkipsLeft > 0 {
		row[7] = humanize.Count(j.SkipsLeft)
		if j.MoreSkips {
			row[7] += "+"
		}
	}
	return row
}

func runLetters(last []operator.RunSummary) string {
	var b strings.Builder
	for _, r := range last {
		if !r.Status.IsOver() {
			b.WriteByte('R')
			continue
		}
		b.WriteByte(r.Status[0])
	}
	return orDash(b.String())
}

func nextText(j *operator.JobSummary) string {
	switch {
	case j.Paused:
		return "paused"
	case j.ScheduleProblem != "":
		return "schedule not understood"
	case j.Next == nil:
		return "-"
	}
	return j.Next.At.Format("Mon 2006-01-02 15:04 -07:00")
}

func summaryCSV(jobs []operator.JobSummary) [][]string {
	rows := make([][]string, 0, len(jobs))
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	for i := range jobs {
		j := &jobs[i]
		row := []string{j.Job, "", strconv.Itoa(len(j.Last)), "", "", "", "", "", strconv.FormatBool(j.Paused), strconv.Itoa(j.SkipsLeft), strconv.Itoa(len(j.Problems))}
		var sources []string
		for _, s := range j.Sources {
			sources = append(sources, string(s))
		}
		row[1] = strings.Join(slices.Sorted(slices.Values(sources)), " ")
		if j.SuccessRate != nil {
			row[3] = number(*j.SuccessRate)
		}
		if j.Duration != nil {
			row[4], row[5] = csvSeconds(j.Duration.Median), csvSeconds(j.Duration.P95)
		}
		if j.Rows != nil {
			row[6] = number(j.Rows.Median)
		}
		if j.Next != nil {
			row[7] = csvTime(j.Next.At)
		}
		rows = append(rows, row)
	}
	return rows
}
