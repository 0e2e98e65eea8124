package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
	"github.com/surfin-batch/surfin/pkg/batch/operator"
)

// operator is what acts on executions, in the name of who typed the command. j is
// the job that can be started; nil: none is.
func (p *program) operator(s *Session, j *core.Job) (*job.Operator, error) {
	return job.NewOperator(job.OperatorConfig{
		Repository: s.Repository, Launcher: s.Launcher, Actor: actor(), Dead: job.DeadOwner, Sweep: s.Sweep,
		Jobs: func(_ context.Context, name string) (*core.Job, error) {
			if j == nil || j.Name != name {
				return nil, fmt.Errorf("%s: %w", name, core.ErrNoSuchJob)
			}
			return j, nil
		},
	})
}

// actor is who acts, for the audit: the user and the host.
func actor() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

// operate reads the execution and acts on it.
func (p *program) operate(ctx context.Context, id core.JobExecutionID, act func(s *Session, o *job.Operator, e *core.JobExecution) error) error {
	if err := p.configure(); err != nil {
		return err
	}
	if p.absent(p.settings.Repository.Database) {
		return p.notFound(core.ErrNotFound, id)
	}
	return p.withSession(ctx, p.quiet(), func(s *Session) error {
		e, err := s.Repository.Execution(ctx, id)
		if err != nil {
			return p.notFound(err, id)
		}
		o, err := p.operator(s, nil)
		if err != nil {
			return err
		}
		return act(s, o, e)
	})
}

func (p *program) abandonCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "abandon EXECUTION",
		Short: "Give up an execution that stopped or failed: its instance will not go on",
		Long: `Marks an execution that is stopped, failed, of unknown outcome, or stopping for
too long as ABANDONED: nobody restarts it by mistake. What it committed stays. A
new instance of the same parameters is made by "run --again".

One that runs is to be stopped first, one that completed has nothing to give up:
both are refused with exit code 1, and nothing is changed.`,
		Example:           "  " + p.app.Name + " abandon 12",
		Args:              oneExecution,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			return p.abandon(cmd.Context(), id)
		},
	}
	p.addFormatFlag(cmd)
	return cmd
}

func (p *program) abandon(ctx context.Context, id core.JobExecutionID) error {
	return p.operate(ctx, id, func(_ *Session, o *job.Operator, e *core.JobExecution) error {
		after, err := o.Abandon(ctx, id)
		if err == nil && after.Status != core.StatusAbandoned { // it is past that, which the repository calls no error
			err = &core.TransitionError{Machine: "execution", ID: int64(id), To: core.StatusAbandoned, Current: after.Status}
		}
		if err != nil {
			return p.notAbandoned(err, e)
		}
		if p.format == formatJSON {
			return p.printJSON(p.executionRecord(p.viewOf(*after)))
		}
		return p.print(headline(p.viewOf(*after)) + "\n  its instance does not go on any more\n" + p.hintText(p.anewHints(*after)))
	})
}

// notAbandoned says why an execution cannot be given up, and what to do instead.
func (p *program) notAbandoned(err error, e *core.JobExecution) error {
	var running *core.AlreadyRunningError
	var refused *core.TransitionError
	current := e.Status
	switch {
	case errors.As(err, &refused):
		current = refused.Current
	case !errors.As(err, &running):
		return err
	}
	hints := []string{"what it did:  " + p.command("show", idText(e.ID))}
	if current.IsRunning() {
		hints = p.runningHints(e.ID, e.Owner)
	}
	return &exitError{code: ExitFailed, hints: hints,
		err: fmt.Errorf("execution %d is %s: only one that stopped or failed can be abandoned", e.ID, current)}
}

func (p *program) recoverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "End executions whose process died, so that they can be restarted",
		Long: `Looks for executions that no process works on any more: their lease has expired,
or their process was on this host and is dead. They become FAILED, with their
unfinished steps, and the commands that go on with them are printed. Executions
that are alive are not touched.

"run" and "restart" do so by themselves for the instance that they launch. This
command is for what nobody launches again: after a node was lost, or before a
deployment.`,
		Example: "  " + p.app.Name + " recover",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.recover(cmd.Context()) },
	}
	p.addFormatFlag(cmd)
	return cmd
}

func (p *program) recover(ctx context.Context) error {
	var ended []core.JobExecution
	err := p.read(ctx, func(s *Session) error {
		o, err := p.operator(s, nil)
		if err != nil {
			return err
		}
		ended, err = o.Recover(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if p.format == formatJSON {
		records := make([]executionRecord, 0, len(ended))
		for _, e := range ended {
			records = append(records, p.executionRecord(p.viewOf(e)))
		}
		return p.printJSON(records)
	}
	if len(ended) == 0 {
		p.log.InfoContext(ctx, "nothing to recover: whatever runs is alive")
		return nil
	}
	views := make([]operator.Execution, len(ended))
	for i, e := range ended {
		views[i] = p.viewOf(e)
	}
	text := executionTable(views) + "\n"
	for _, e := range ended {
		text += "restart it:  " + p.restartLine(e, "FILE") + "\n"
	}
	return p.print(text)
}

// purging are the flags of purge.
type purging struct {
	olderThan string
	statuses  []string
	filter    core.PurgeFilter
}

func (p *program) purgeCommand() *cobra.Command {
	var o purging
	cmd := &cobra.Command{
		Use:   "purge --older-than AGE",
		Short: "Delete old executions from the history",
		Long: `Deletes executions that ended more than AGE ago, with their parameters, steps,
skipped items and checkpoints; an instance goes with its last execution, and may
then run again. What runs is never deleted. The audit stays.`,
		Example: "  " + p.app.Name + " purge --older-than 90d --dry-run\n" +
			"  " + p.app.Name + " purge --older-than 2w --job load --status COMPLETED,FAILED --keep-last 10",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.purge(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.olderThan, "older-than", "", "only executions that ended longer ago than this `AGE`: 90d, 2w, 36h (required)")
	f.StringVar(&o.filter.JobName, "job", "", "only executions of the job with this `NAME`")
	f.StringSliceVar(&o.statuses, "status", nil, "only executions in these `STATUSES` (default: completed, abandoned)")
	f.IntVar(&o.filter.KeepLast, "keep-last", 0, "keep the newest `N` instances of each job, however old")
	f.BoolVar(&o.filter.DryRun, "dry-run", false, "delete nothing, only count")
	p.addFormatFlag(cmd)
	completeFlag(cmd, "status", statusNames()...)
	return cmd
}

type purgedRecord struct {
	Instances    int64 `json:"instances"`
	Executions   int64 `json:"executions"`
	Steps        int64 `json:"steps"`
	SkippedItems int64 `json:"skipped_items"`
	DryRun       bool  `json:"dry_run,omitempty"`
}

func (p *program) purge(ctx context.Context, o purging) error {
	filter, err := o.check()
	if err != nil {
		return err
	}
	age, err := parseAge("--older-than", o.olderThan)
	if err != nil {
		return err
	}
	filter.EndedBefore = p.now().Add(-age)
	var purged core.Purged
	err = p.read(ctx, func(s *Session) error {
		operator, err := p.operator(s, nil)
		if err != nil {
			return err
		}
		purged, err = operator.Purge(ctx, filter)
		return err
	})
	if err != nil {
		return err
	}
	if p.format == formatJSON {
		return p.printJSON(purgedRecord{purged.Instances, purged.Executions, purged.Steps, purged.SkippedItems, filter.DryRun})
	}
	verb := "deleted"
	if filter.DryRun {
		verb = "would delete"
	}
	return p.print(fmt.Sprintf("%s %s, %s, %s, %s that ended before %s\n", verb, plural(int(purged.Executions), "execution"),
		plural(int(purged.Instances), "instance"), plural(int(purged.Steps), "step"), plural(int(purged.SkippedItems), "skipped item"),
		timeText(filter.EndedBefore)))
}

func (o purging) check() (core.PurgeFilter, error) {
	filter := o.filter
	if o.olderThan == "" {
		return filter, usagef("--older-than AGE is required: 90d, 2w, 36h")
	}
	if filter.KeepLast < 0 {
		return filter, usagef("--keep-last %d: at least 0", filter.KeepLast)
	}
	var err error
	if filter.Statuses, err = parseStatuses(o.statuses); err != nil {
		return filter, err
	}
	for _, s := range filter.Statuses {
		if s.IsRunning() {
			return filter, usagef("--status %s: what runs is never purged", s)
		}
	}
	return filter, nil
}

// hintText writes ways out below a result.
func (p *program) hintText(hints []string) string {
	var b strings.Builder
	for _, h := range hints {
		b.WriteString("  " + h + "\n")
	}
	return b.String()
}
