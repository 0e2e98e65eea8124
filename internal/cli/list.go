package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/contrib"
	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type listFlags struct {
	request      operator.ListRequest
	statuses     []string
	since, until string
	before       int64
	after        int64
	instance     int64
	find         findFlags
}

func (c showCommands) listCommand() *cobra.Command {
	var l listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List executions, newest first; or jobs, instances, components",
		Example: "  " + c.env.app.Name + " list --job load --status FAILED,STOPPED --since 7d\n" +
			"  " + c.env.app.Name + " list --running\n" +
			"  " + c.env.app.Name + " list --text timeout --param day:2026-11-21 --count",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			req, err := l.check(c.env.now())
			if err != nil {
				return err
			}
			return c.list(cmd.Context(), req)
		},
	}
	f := cmd.Flags()
	l.addFilters(cmd)
	f.Int64Var(&l.before, "before", 0, "only executions with a smaller number than `EXECUTION`: the next page")
	f.Int64Var(&l.after, "after", 0, "only executions with a greater number than `EXECUTION`, oldest first")
	f.IntVar(&l.request.Limit, "limit", 20, "at most `N` executions")
	f.BoolVar(&l.request.FailedSteps, "failed-steps", false, "also the step that failed of each failed execution")
	f.BoolVar(&l.request.Count, "count", false, "count the executions of all pages, up to 10,000")
	c.env.addListFormatFlag(cmd)
	cmd.AddCommand(c.listComponentsCommand(), c.listJobsCommand(), c.listInstancesCommand())
	return cmd
}

func (l *listFlags) addFilters(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.request.Job, "job", "", "only executions of the job with this `NAME`")
	f.StringSliceVar(&l.statuses, "status", nil, "only executions in these `STATUSES`: "+strings.ToLower(humanize.Join(operator.StatusNames())))
	f.BoolVar(&l.request.Running, "running", false, "only unfinished executions: starting, started, stopping")
	f.StringVar(&l.request.Exit, "exit", "", "only executions with this exit `CODE`, such as EXPECT_FAILED")
	f.Int64Var(&l.instance, "instance", 0, "only executions of the `INSTANCE` with this number")
	f.StringVar(&l.since, "since", "", "only executions made at this `TIME` or later: a date, a time, or how long ago (7d, 12h)")
	f.StringVar(&l.until, "until", "", "only executions made before this `TIME`")
	l.find.add(cmd, &l.request.Search)
	completeFlag(cmd, "status", operator.StatusNames()...)
}

func (l *listFlags) check(now time.Time) (req operator.ListRequest, err error) {
	req = l.request
	req.Before, req.After, req.Instance = core.JobExecutionID(l.before), core.JobExecutionID(l.after), core.JobInstanceID(l.instance)
	if req.Limit < 1 {
		return req, usagef("--limit %d: at least 1", req.Limit)
	}
	if req.Statuses, err = parseStatuses(l.statuses); err != nil {
		return req, err
	}
	if req.Running && len(l.statuses) > 0 {
		return req, usagef("--running and --status: one of them")
	}
	if l.since != "" {
		if req.Since, err = parseMoment("--since", l.since, now); err != nil {
			return req, err
		}
	}
	if l.until != "" {
		if req.Until, err = parseMoment("--until", l.until, now); err != nil {
			return req, err
		}
	}
	return req, l.find.check(&req.Search, now)
}

func (c showCommands) list(ctx context.Context, req operator.ListRequest) error {
	var page operator.ExecutionPage
	err := c.env.read(ctx, func(s *Session) (err error) {
		page, err = s.Service.List(ctx, req)
		return err
	})
	if err != nil {
		return wrongFlag(err)
	}
	l := listing{c, &page, &req}
	defer l.sayRest(ctx)
	if c.env.format == formatJSON {
		records := make([]executionRecord, 0, len(page.Executions))
		for _, e := range page.Executions {
			records = append(records, c.env.executionRecord(e))
		}
		return c.env.printJSON(records)
	}
	if c.env.format == formatCSV {
		return c.executionsCSV(page.Executions, req.FailedSteps)
	}
	if len(page.Executions) == 0 {
		return l.sayNothing(ctx)
	}
	if err := c.env.print(executionTable(page.Executions, req.FailedSteps)); err != nil {
		return err
	}
	if text := placedInVain(page.Executions); text != "" {
		if err := c.env.print(text); err != nil {
			return err
		}
	}
	if text := c.parkedInVain(page.Executions); text != "" {
		return c.env.print(text)
	}
	return nil
}

func placedInVain(page []operator.Execution) string {
	text := ""
	for _, e := range page {
		for _, p := range e.Placed {
			text += "\n" + wording.ID(e.ID) + ": " + wording.Placed(p)
		}
	}
	if text == "" {
		return ""
	}
	return text + "\n"
}

func (c showCommands) parkedInVain(page []operator.Execution) string {
	var ids []string
	var waiting *operator.Waiting
	for _, e := range page {
		if e.Waiting.NoWorker() {
			ids, waiting = append(ids, wording.ID(e.ID)), e.Waiting
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return "\n" + humanize.Join(ids) + ": parked; " + c.env.words().NoWorker(waiting) + "\n"
}

func executionTable(page []operator.Execution, failedSteps bool) string {
	columns := []column{
		{title: "id", right: true}, {title: "job"}, {title: "parameters"}, {title: "status"},
		{title: "attempt", right: true}, {title: "started"}, {title: "duration", right: true},
	}
	if failedSteps {
		columns = append(columns, column{title: "failed step"})
	}
	var rows [][]string
	params := newParameterColumn()
	for _, e := range page {
		params.add(e.JobName, e.Params.Parameters)
	}
	for _, e := range page {
		took := "-"
		if !e.StartedAt.IsZero() {
			took = humanize.Seconds(e.Duration)
		}
		cells := []string{wording.ID(e.ID), e.JobName, params.text(e.JobName, e.Params.Parameters),
			wording.StatusAndExit(e.Status, e.ExitCode) + wording.OwnerNote(e.Owner), humanize.Count(e.Attempt), humanize.Time(e.StartedAt), took}
		if failedSteps {
			cells = append(cells, cmp.Or(e.FailedStep, "-"))
		}
		rows = append(rows, cells)
	}
	return renderTable(columns, rows)
}

func parseStatuses(texts []string) ([]core.Status, error) {
	var list []core.Status
	for _, text := range texts {
		s := core.Status(strings.ToUpper(strings.TrimSpace(text)))
		if !slices.Contains(core.Statuses(), s) {
			return nil, usagef("--status %s: no such status; known: %s", text, humanize.Join(operator.StatusNames()))
		}
		list = append(list, s)
	}
	return list, nil
}

func (c showCommands) listComponentsCommand() *cobra.Command {
	var kind string
	cmd := &cobra.Command{
		Use:   "components",
		Short: "List the components and item types for job files",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return c.listComponents(registry.Kind(kind))
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "only components of this `KIND`: "+humanize.Join(kindNames()))
	c.env.addListFormatFlag(cmd)
	completeFlag(cmd, "kind", kindNames()...)
	return cmd
}

// Item types are not components, but job files use them by name as well.
const kindItem = "item"

func kindNames() []string {
	var names []string
	for _, k := range registry.Kinds() {
		names = append(names, string(k))
	}
	return append(names, kindItem)
}

type componentRecord struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Summary string `json:"summary"`
	// With is the family of contrib that the program lacks.
	With string `json:"with,omitempty"`
}

func (r componentRecord) text(program string) string {
	if r.With == "" {
		return r.Summary
	}
	return strings.TrimSuffix(r.Summary, ".") + " (not in this program: " + program + " build --with " + r.With + ")"
}

func (c showCommands) listComponents(kind registry.Kind) error {
	var records []componentRecord
	for _, component := range c.env.app.Registry.Components() {
		records = append(records, componentRecord{Kind: string(component.Kind), Name: component.Name, Summary: component.Summary})
	}
	for _, lacking := range contrib.Missing(c.env.app.Registry) {
		records = append(records, componentRecord{string(lacking.Kind), lacking.Name, lacking.Summary, lacking.Family})
	}
	for _, name := range c.env.app.Registry.ItemNames() {
		t, _ := c.env.app.Registry.Item(name)
		records = append(records, componentRecord{Kind: kindItem, Name: name, Summary: "item type " + t.Name()})
	}
	shown := make([]componentRecord, 0, len(records))
	var rows [][]string
	for _, r := range records {
		if kind == "" || r.Kind == string(kind) {
			shown = append(shown, r)
			rows = append(rows, []string{r.Kind, r.Name, r.text(c.env.app.Name)})
		}
	}
	if kind != "" && !slices.Contains(kindNames(), string(kind)) {
		return usagef("--kind %s: no such kind; known: %s", kind, humanize.Join(kindNames()))
	}
	if c.env.format == formatJSON {
		return c.env.printJSON(shown)
	}
	if c.env.format == formatCSV {
		return c.env.printCSV([]string{"kind", "name", "summary"}, rows)
	}
	return c.env.print(renderTable([]column{{title: "kind"}, {title: "name"}, {title: "summary"}}, rows))
}
