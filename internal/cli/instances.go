package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (c showCommands) listJobsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "List the jobs of the history, with the newest execution of each",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.listJobs(cmd.Context()) },
	}
	c.env.addListFormatFlag(cmd)
	return cmd
}

func (c showCommands) listJobs(ctx context.Context) error {
	jobs := []operator.Execution{}
	err := c.env.read(ctx, func(s *Session) (err error) {
		jobs, err = s.Service.Jobs(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if c.env.format == formatJSON {
		return c.env.printJSON(jobs)
	}
	if c.env.format == formatCSV {
		return c.executionsCSV(jobs, false)
	}
	if len(jobs) == 0 {
		return c.noExecutions(ctx, "")
	}
	return c.env.print(executionTable(jobs, false))
}

func (c showCommands) listInstancesCommand() *cobra.Command {
	var req operator.InstancesRequest
	var before int64
	cmd := &cobra.Command{
		Use:     "instances",
		Short:   "List job instances, newest first, with the outcome of each",
		Example: "  " + c.env.app.Name + " list instances --job load",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if req.Limit < 1 {
				return usagef("--limit %d: at least 1", req.Limit)
			}
			req.Before = core.JobInstanceID(before)
			return c.listInstances(cmd.Context(), req)
		},
	}
	f := cmd.Flags()
	f.StringVar(&req.Job, "job", "", "only instances of the job with this `NAME`")
	f.Int64Var(&before, "before", 0, "only instances with a smaller number than `INSTANCE`: the next page")
	f.IntVar(&req.Limit, "limit", 20, "at most `N` instances")
	c.env.addListFormatFlag(cmd)
	return cmd
}

func (c showCommands) listInstances(ctx context.Context, req operator.InstancesRequest) error {
	page := operator.InstancePage{Instances: []operator.InstanceView{}}
	err := c.env.read(ctx, func(s *Session) (err error) {
		page, err = s.Service.Instances(ctx, req)
		return err
	})
	if err != nil {
		return err
	}
	if c.env.format == formatJSON {
		return c.env.printJSON(page.Instances)
	}
	if c.env.format == formatCSV {
		return c.instancesCSV(page.Instances)
	}
	if len(page.Instances) == 0 {
		return c.noExecutions(ctx, req.Job)
	}
	if err := c.env.print(instanceTable(page.Instances)); err != nil {
		return err
	}
	if page.Next != 0 {
		c.env.log.InfoContext(ctx, fmt.Sprintf("there are more: --before %d", page.Next))
	}
	return nil
}

func instanceTable(instances []operator.InstanceView) string {
	var rows [][]string
	params := newParameterColumn()
	for _, i := range instances {
		params.add(i.JobName, i.Params.Parameters)
	}
	for _, i := range instances {
		rows = append(rows, []string{fmt.Sprint(i.ID), i.JobName, params.text(i.JobName, i.Params.Parameters), humanize.Count(i.Attempts),
			wording.ID(i.Execution), wording.StatusAndExit(i.Status, i.ExitCode)})
	}
	return renderTable([]column{
		{title: "instance", right: true}, {title: "job"}, {title: "parameters"}, {title: "attempts", right: true},
		{title: "last execution", right: true}, {title: "status"},
	}, rows)
}

// read does not create a missing database.
func (env *environment) read(ctx context.Context, f func(s *Session) error) error {
	if err := env.configure(); err != nil {
		return err
	}
	if env.isAbsent(env.settings.Repository.Database) {
		return nil
	}
	return env.withSession(ctx, env.observer(), f)
}

func (c showCommands) noExecutions(ctx context.Context, job string) error {
	where := " in " + c.env.databaseText(c.env.settings.Repository.Database)
	if job == "" {
		c.env.log.InfoContext(ctx, "no executions"+where)
		return nil
	}
	var names []string
	err := c.env.read(ctx, func(s *Session) error {
		jobs, err := s.Service.Jobs(ctx)
		for _, j := range jobs {
			names = append(names, j.JobName)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case slices.Contains(names, job):
		c.env.log.InfoContext(ctx, "no such executions of job "+job+where)
	default:
		c.env.log.WarnContext(ctx, "no job "+job+where+nearest.Hint(job, names))
	}
	return nil
}
