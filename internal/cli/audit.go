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

func (c showCommands) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List the audit: each act, its actor and its time",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.listActsCommand())
	return cmd
}

func (c showCommands) listActsCommand() *cobra.Command {
	var req operator.ActsRequest
	var since string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List acts, newest first: runs, restarts, stops, registrations, settings and others",
		Long: `Lists the acts of persons, API clients and the leader, newest first. An act and its record commit in one
transaction, so neither exists without the other (the record of a migration follows it).

The actor of a command is --as PERSON with the user and the host, or the user and the host; the actor of a
request is the client of its token. A launch by a task of type job has the number of that task.

The output is paged; --before N shows the next page. "settings set audit_retention_days N" deletes older records;
"show EXECUTION --audit" has the transitions of one execution.`,
		Example: "  " + c.env.app.Name + " audit list --since 7d --actor ada\n" +
			"  " + c.env.app.Name + " audit list --job load --act restart --format json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if req.Limit < 1 || req.Limit > maxActs {
				return usagef("--limit %d: 1 to %d are allowed", req.Limit, maxActs)
			}
			if since != "" {
				if req.Since, err = parseMoment("--since", since, c.env.now()); err != nil {
					return err
				}
			}
			return c.listActs(cmd.Context(), req)
		},
	}
	f := cmd.Flags()
	f.StringVar(&since, "since", "", "only acts since this `TIME`: a date, a time, or how long ago it was (7d, 36h)")
	f.StringVar(&req.Job, "job", "", "only acts on the job with this `NAME`")
	f.StringVar(&req.Actor, "actor", "", "only acts of this `PERSON` or client")
	f.StringVar(&req.Act, "act", "", "only this `ACT`: "+strings.Join(ports.Verbs(), ", "))
	f.Int64Var(&req.Before, "before", 0, "only acts before the one with this number `N`: the next page")
	f.IntVar(&req.Limit, "limit", 50, "at most `N` acts")
	completeFlag(cmd, "act", ports.Verbs()...)
	c.env.addListFormatFlag(cmd)
	return cmd
}

const maxActs = 10_000

func (c showCommands) listActs(ctx context.Context, req operator.ActsRequest) error {
	page := operator.ActPage{Acts: []operator.ActView{}}
	err := c.env.read(ctx, func(s *Session) (err error) {
		page, err = s.Service.Acts(ctx, req)
		return err
	})
	if errors.As(err, new(*operator.RequestError)) {
		return usage(err)
	}
	if err != nil {
		return c.env.refusal(err)
	}
	switch c.env.format {
	case formatJSON:
		return c.env.printJSON(page)
	case formatCSV:
		rows := make([][]string, len(page.Acts))
		for i, a := range page.Acts {
			rows[i] = []string{fmt.Sprint(a.ID), csvTime(a.At), a.Act, a.Actor, a.Job, numberText(int64(a.Execution)), numberText(a.Task), a.Detail}
		}
		return c.env.printCSV([]string{"id", "at", "act", "actor", "job", "execution", "task", "detail"}, rows)
	}
	switch {
	case len(page.Acts) == 0 && page.Next != 0:
		return c.env.print(fmt.Sprintf("no such acts among the newest; older ones: --before %d\n", page.Next))
	case len(page.Acts) == 0:
		c.env.log.InfoContext(ctx, "the audit has no such acts")
		return nil
	}
	text := actTable(page.Acts)
	if page.Next != 0 {
		text += fmt.Sprintf("the next page: --before %d\n", page.Next)
	}
	return c.env.print(text)
}

func actTable(list []operator.ActView) string {
	rows := make([][]string, len(list))
	for i, a := range list {
		on := strings.TrimSpace(a.Job + " " + numberText(int64(a.Execution)))
		if a.Task != 0 {
			on = "task " + numberText(a.Task)
		}
		rows[i] = []string{humanize.Time(a.At), a.Act, wording.Actor(a.Actor), on, humanize.OneLine(wording.ActDetail(a.Detail))}
	}
	return renderTable([]column{{title: "at"}, {title: "act"}, {title: "by"}, {title: "on"}, {title: "detail"}}, rows)
}

func numberText(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
