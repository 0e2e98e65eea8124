package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// aboutExecution configures the command and calls act for an execution. It does not create a
// missing database: that has no such execution.
func (env *environment) aboutExecution(_ context.Context, id core.JobExecutionID, act func() error) error {
	if err := env.configure(); err != nil {
		return err
	}
	if env.isAbsent(env.settings.Repository.Database) {
		return env.notFound(core.ErrNotFound, id)
	}
	return act()
}

func (env *environment) withExecution(ctx context.Context, id core.JobExecutionID, act func(s *operator.Service) error) error {
	return env.aboutExecution(ctx, id, func() error {
		return env.withSession(ctx, env.observer(), func(s *Session) error { return act(s.Service) })
	})
}

func (c operateCommands) abandonCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "abandon EXECUTION",
		Short: "Give up an execution that stopped or failed: its instance will not go on",
		Long: `Marks an execution that is stopped, failed, of unknown outcome, or stopping for
too long as ABANDONED: nobody restarts it by mistake. What it committed stays. A
new instance of the same parameters is made by "run --again".

One that runs is to be stopped first, one that completed has nothing to give up:
both are refused with exit code 1, and nothing is changed.`,
		Example:           "  " + c.env.app.Name + " abandon 12",
		Args:              oneExecution,
		ValidArgsFunction: c.env.completeExecution,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			return c.abandon(cmd.Context(), id)
		},
	}
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c operateCommands) abandon(ctx context.Context, id core.JobExecutionID) error {
	return c.env.withExecution(ctx, id, func(s *operator.Service) error {
		e, err := s.Abandon(ctx, id)
		if err != nil {
			return c.env.refusal(err)
		}
		if c.env.format == formatJSON {
			return c.env.printJSON(c.env.executionRecord(*e))
		}
		return c.env.print(headline(*e) + "\n  its instance does not go on any more\n" + hintText(hintLines(c.env.restartHints(*e))))
	})
}

func (env *environment) restartHints(e operator.Execution) []hint {
	var list []hint
	for _, a := range e.Actions {
		h := env.actionHint(a)
		if a.Kind == refusal.ActRedrive {
			h.label = "restart it"
		}
		list = append(list, h)
	}
	return list
}

func (c operateCommands) recoverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "End executions whose process died, so that they can be restarted",
		Long: `Looks for executions that no process works on any more: their lease has expired,
or their process was on this host and is dead. They become FAILED, with their
unfinished steps, and the commands that go on with them are printed. Executions
that are alive are not touched. One that is parked and was asked to stop becomes
STOPPED, unless a worker has a part of it.

"run" and "restart" do so by themselves for the instance that they launch. This
command is for what nobody launches again: after a node was lost, or before a
deployment.`,
		Example: "  " + c.env.app.Name + " recover",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.recover(cmd.Context()) },
	}
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c operateCommands) recover(ctx context.Context) error {
	var ended []operator.Execution
	err := c.env.read(ctx, func(s *Session) (err error) {
		ended, err = s.Service.Recover(ctx)
		return err
	})
	if errors.As(err, new(*operator.NotEndedError)) {
		err = &exitError{code: ExitFailed, err: err, hints: hintLines([]hint{{"where it can", c.env.command("worker")}})}
	}
	if err != nil && len(ended) == 0 {
		return err
	}
	return errors.Join(c.printRecovered(ctx, ended), err)
}

func (c operateCommands) printRecovered(ctx context.Context, ended []operator.Execution) error {
	if c.env.format == formatJSON {
		records := make([]executionRecord, 0, len(ended))
		for _, e := range ended {
			records = append(records, c.env.executionRecord(e))
		}
		return c.env.printJSON(records)
	}
	if len(ended) == 0 {
		c.env.log.InfoContext(ctx, "nothing to recover: whatever runs is alive, or is parked and waits for workers")
		return nil
	}
	text := executionTable(ended) + "\n"
	for _, e := range ended {
		for _, line := range hintLines(c.env.restartHints(e)) {
			text += line + "\n"
		}
	}
	return c.env.print(text)
}

type purgeFlags struct {
	yes       bool
	olderThan string
	instance  int64
	statuses  []string
	req       operator.PurgeRequest
}

func (c operateCommands) purgeCommand() *cobra.Command {
	var o purgeFlags
	cmd := &cobra.Command{
		Use:   "purge (--older-than AGE | --instance N)",
		Short: "Delete old executions from the history",
		Long: `Deletes executions that ended more than AGE ago, with their parameters, steps,
skipped items and checkpoints; an instance goes with its last execution, and may
then run again. What runs is never deleted. The audit stays, and so does what the
next instance of a job with an incrementer follows. Tasks and events of inboxes are
deleted by the leader of the workers only, which deletes old executions as well, where
"settings set history_retention_days" says after how many days.

--instance deletes one instance with all of its executions, whatever their age and
status: what it committed elsewhere stays, and it begins anew when it is run again.`,
		Example: "  " + c.env.app.Name + " purge --older-than 90d --dry-run\n" +
			"  " + c.env.app.Name + " purge --older-than 2w --job load --status COMPLETED,FAILED --keep-last 10\n" +
			"  " + c.env.app.Name + " purge --instance 12",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.purge(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.olderThan, "older-than", "", "only executions that ended longer ago than this `AGE`: 90d, 2w, 36h")
	f.Int64Var(&o.instance, "instance", 0, "the instance with this number `N`, as \"list instances\" shows it, and no other")
	f.StringVar(&o.req.Job, "job", "", "only executions of the job with this `NAME`")
	f.StringSliceVar(&o.statuses, "status", nil, "only executions in these `STATUSES` (default: completed, abandoned)")
	f.IntVar(&o.req.KeepLast, "keep-last", 0, "keep the newest `N` instances of each job, however old")
	f.BoolVar(&o.yes, "yes", false, "delete all that is over, however young: --older-than 0s needs it")
	f.BoolVar(&o.req.DryRun, "dry-run", false, "delete nothing, only count")
	c.env.addFormatFlag(cmd)
	completeFlag(cmd, "status", statusNames()...)
	return cmd
}

func (c operateCommands) purge(ctx context.Context, o purgeFlags) error {
	req, err := o.check()
	if err != nil {
		return err
	}
	when := ""
	if req.Instance == 0 {
		age, err := parseAge("--older-than", o.olderThan)
		if err != nil {
			return err
		}
		if age == 0 && !o.yes && !req.DryRun {
			return usage(fmt.Errorf("--older-than %s deletes all that is over, also what ended a moment ago: say --yes as well", o.olderThan),
				"how many that are:  "+c.env.command("purge", "--older-than", o.olderThan, "--dry-run"))
		}
		req.EndedBefore = c.env.now().Add(-age)
		when = " that ended before " + timeText(req.EndedBefore)
	}
	purged := operator.Purged{DryRun: req.DryRun}
	err = c.env.read(ctx, func(s *Session) (err error) {
		purged, err = s.Service.Purge(ctx, req)
		return err
	})
	switch {
	case err == nil && req.Instance != 0 && purged.Instances == 0, req.Instance != 0 && errors.Is(err, core.ErrNotFound):
		return usage(fmt.Errorf("no instance %d in %s", req.Instance, c.env.databaseText(c.env.settings.Repository.Database)),
			"list them:  "+c.env.command("list", "instances"))
	case err != nil:
		return c.env.refusal(err)
	}
	if c.env.format == formatJSON {
		return c.env.printJSON(purged)
	}
	verb := "deleted"
	if req.DryRun {
		verb = "would delete"
	}
	return c.env.print(fmt.Sprintf("%s %s, %s, %s, %s%s\n", verb, plural(int(purged.Executions), "execution"),
		plural(int(purged.Instances), "instance"), plural(int(purged.Steps), "step"), plural(int(purged.SkippedItems), "skipped item"), when))
}

func (o purgeFlags) check() (operator.PurgeRequest, error) {
	req := o.req
	if o.instance != 0 {
		if o.olderThan != "" || o.yes || req.Job != "" || len(o.statuses) > 0 || req.KeepLast != 0 {
			return req, usagef("--instance %d: only --dry-run goes with it", o.instance)
		}
		req.Instance = core.JobInstanceID(o.instance)
		return req, nil
	}
	if o.olderThan == "" {
		return req, usagef("--older-than AGE is required (90d, 2w, 36h), or --instance N")
	}
	if req.KeepLast < 0 {
		return req, usagef("--keep-last %d: at least 0", req.KeepLast)
	}
	var err error
	if req.Statuses, err = parseStatuses(o.statuses); err != nil {
		return req, err
	}
	for _, s := range req.Statuses {
		if s.IsRunning() {
			return req, usagef("--status %s: what runs is never purged", s)
		}
	}
	return req, nil
}
