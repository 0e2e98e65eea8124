package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/operator"
)

func (p *program) listJobsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "List the jobs of the history, with how often they ran",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return p.listJobs(cmd.Context()) },
	}
	p.addFormatFlag(cmd)
	return cmd
}

func (p *program) listJobs(ctx context.Context) error {
	jobs := []operator.JobView{}
	err := p.read(ctx, func(s *Session) (err error) {
		jobs, err = s.Service.Jobs(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if p.format == formatJSON {
		return p.printJSON(jobs)
	}
	if len(jobs) == 0 {
		return p.nothing(ctx)
	}
	var rows [][]string
	for _, j := range jobs {
		rows = append(rows, []string{j.Job, count(j.Instances), count(j.Executions)})
	}
	return p.print(renderTable([]column{{title: "job"}, {title: "instances", right: true}, {title: "executions", right: true}}, rows))
}

func (p *program) listInstancesCommand() *cobra.Command {
	var req operator.InstancesRequest
	var before int64
	cmd := &cobra.Command{
		Use:     "instances",
		Short:   "List job instances, newest first, with what became of each",
		Example: "  " + p.app.Name + " list instances --job load",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if req.Limit < 1 {
				return usagef("--limit %d: at least 1", req.Limit)
			}
			req.Before = core.JobInstanceID(before)
			return p.listInstances(cmd.Context(), req)
		},
	}
	f := cmd.Flags()
	f.StringVar(&req.Job, "job", "", "only instances of the job with this `NAME`")
	f.Int64Var(&before, "before", 0, "only instances with a smaller number than `INSTANCE`: the next page")
	f.IntVar(&req.Limit, "limit", 20, "at most `N` instances")
	p.addFormatFlag(cmd)
	return cmd
}

func (p *program) listInstances(ctx context.Context, req operator.InstancesRequest) error {
	page := operator.InstancePage{Instances: []operator.InstanceView{}}
	err := p.read(ctx, func(s *Session) (err error) {
		page, err = s.Service.Instances(ctx, req)
		return err
	})
	if err != nil {
		return err
	}
	if p.format == formatJSON {
		return p.printJSON(page.Instances)
	}
	if len(page.Instances) == 0 {
		return p.nothing(ctx)
	}
	if err := p.print(instanceTable(page.Instances)); err != nil {
		return err
	}
	if page.Next != 0 {
		p.log.InfoContext(ctx, fmt.Sprintf("there are more: --before %d", page.Next))
	}
	return nil
}

func instanceTable(instances []operator.InstanceView) string {
	var rows [][]string
	for _, i := range instances {
		rows = append(rows, []string{fmt.Sprint(i.ID), i.JobName, clip(parameterText(i.Params.All()), 60), count(int64(i.Attempts)),
			idText(i.Execution), statusAndExit(i.Status, i.ExitCode)})
	}
	return renderTable([]column{
		{title: "instance", right: true}, {title: "job"}, {title: "parameters"}, {title: "attempts", right: true},
		{title: "last execution", right: true}, {title: "status"},
	}, rows)
}

// read is withSession for commands that only look: a database that is not there is
// not made.
func (p *program) read(ctx context.Context, f func(s *Session) error) error {
	if err := p.configure(); err != nil {
		return err
	}
	if p.absent(p.settings.Repository.Database) {
		return nil
	}
	return p.withSession(ctx, p.quiet(), f)
}

func (p *program) nothing(ctx context.Context) error {
	p.log.InfoContext(ctx, "no executions in "+p.databaseText(p.settings.Repository.Database))
	return nil
}
