package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/core"
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

type jobRecord struct {
	Job        string `json:"job"`
	Instances  int64  `json:"instances"`
	Executions int64  `json:"executions"`
}

func (p *program) listJobs(ctx context.Context) error {
	var counts []core.JobCount
	err := p.read(ctx, func(s *Session) (err error) {
		counts, err = s.Repository.Jobs(ctx)
		return err
	})
	if err != nil {
		return err
	}
	records, rows := make([]jobRecord, 0, len(counts)), make([][]string, 0, len(counts))
	for _, c := range counts {
		records = append(records, jobRecord{c.JobName, c.Instances, c.Executions})
		rows = append(rows, []string{c.JobName, count(c.Instances), count(c.Executions)})
	}
	if p.format == formatJSON {
		return p.printJSON(records)
	}
	if len(rows) == 0 {
		return p.nothing(ctx)
	}
	return p.print(renderTable([]column{{title: "job"}, {title: "instances", right: true}, {title: "executions", right: true}}, rows))
}

func (p *program) listInstancesCommand() *cobra.Command {
	var filter core.InstanceFilter
	var before int64
	cmd := &cobra.Command{
		Use:     "instances",
		Short:   "List job instances, newest first, with what became of each",
		Example: "  " + p.app.Name + " list instances --job load",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.Limit < 1 {
				return usagef("--limit %d: at least 1", filter.Limit)
			}
			filter.Before = core.JobInstanceID(before)
			return p.listInstances(cmd.Context(), filter)
		},
	}
	f := cmd.Flags()
	f.StringVar(&filter.JobName, "job", "", "only instances of the job with this `NAME`")
	f.Int64Var(&before, "before", 0, "only instances with a smaller number than `INSTANCE`: the next page")
	f.IntVar(&filter.Limit, "limit", 20, "at most `N` instances")
	p.addFormatFlag(cmd)
	return cmd
}

// instanceRecord is an instance with its newest execution.
type instanceRecord struct {
	Instance   int64          `json:"instance"`
	Job        string         `json:"job"`
	Parameters map[string]any `json:"parameters"`
	Attempts   int            `json:"attempts"`
	Execution  int64          `json:"execution"`
	Status     string         `json:"status"`
	Exit       string         `json:"exit,omitempty"`

	parameters string
}

func (p *program) listInstances(ctx context.Context, filter core.InstanceFilter) error {
	limit := filter.Limit
	filter.Limit++ // one more tells whether there is a next page
	records := []instanceRecord{}
	err := p.read(ctx, func(s *Session) error {
		page, err := s.Repository.Instances(ctx, filter)
		if err != nil {
			return err
		}
		last, err := lastExecutions(ctx, s.Repository, page)
		for _, instance := range page {
			e := last[instance.ID]
			records = append(records, newInstanceRecord(instance, &e))
		}
		return err
	})
	if err != nil {
		return err
	}
	more := len(records) > limit
	records = records[:min(len(records), limit)]
	if p.format == formatJSON {
		return p.printJSON(records)
	}
	if len(records) == 0 {
		return p.nothing(ctx)
	}
	if err := p.print(instanceTable(records)); err != nil {
		return err
	}
	if more {
		p.log.InfoContext(ctx, fmt.Sprintf("there are more: --before %d", records[len(records)-1].Instance))
	}
	return nil
}

// lastExecutions are the newest executions of the instances; one that has none, as
// after a purge, is left out.
func lastExecutions(ctx context.Context, history core.JobRepository, page []core.JobInstance) (map[core.JobInstanceID]core.JobExecution, error) {
	if insight, ok := history.(core.Insight); ok {
		ids := make([]core.JobInstanceID, len(page))
		for i, instance := range page {
			ids[i] = instance.ID
		}
		return insight.LastExecutions(ctx, ids...)
	}
	last := map[core.JobInstanceID]core.JobExecution{}
	for _, instance := range page {
		e, err := history.LastExecution(ctx, instance.JobName, instance.Key)
		switch {
		case errors.Is(err, core.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			last[instance.ID] = *e
		}
	}
	return last, nil
}

func newInstanceRecord(instance core.JobInstance, last *core.JobExecution) instanceRecord {
	r := instanceRecord{
		Instance: int64(instance.ID), Job: instance.JobName, Parameters: map[string]any{},
		Attempts: last.Attempt, Execution: int64(last.ID), Status: string(last.Status), Exit: last.ExitCode,
		parameters: parameterText(identifying(last.Params)),
	}
	for _, q := range identifying(last.Params) {
		r.Parameters[q.Name] = parameterRecord(q)
	}
	return r
}

func instanceTable(records []instanceRecord) string {
	var rows [][]string
	for _, r := range records {
		rows = append(rows, []string{fmt.Sprint(r.Instance), r.Job, clip(r.parameters, 60), count(int64(r.Attempts)),
			fmt.Sprint(r.Execution), statusAndExit(core.Status(r.Status), r.Exit)})
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
