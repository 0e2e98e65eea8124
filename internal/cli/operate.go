package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type operateCommands struct{ env *environment }

// aboutExecution does not create a missing database.
func (env *environment) aboutExecution(id core.JobExecutionID, act func() error) error {
	if err := env.configure(); err != nil {
		return err
	}
	if env.isAbsent(env.settings.Repository.Database) {
		return env.notFound(core.ErrNotFound, id)
	}
	return act()
}

func (c operateCommands) withExecution(ctx context.Context, id core.JobExecutionID, act func(s *operator.Service) error) error {
	return c.env.aboutExecution(id, func() error {
		return c.env.withSession(ctx, c.env.observer(), func(s *Session) error { return act(s.Service) })
	})
}

func (c operateCommands) abandonCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "abandon EXECUTION",
		Short: "Abandon an execution that stopped or failed, so that it is never restarted",
		Long: `Marks an execution as ABANDONED if it is stopped, failed, of unknown outcome, or
stopping for too long: it can no longer be restarted by mistake. Its committed work
stays. "run --again" makes a new instance of the same parameters.

A running execution (stop it first) and a completed one are refused with exit
code 1, and nothing is changed.`,
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
	addReasonFlag(c.env, cmd)
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c operateCommands) abandon(ctx context.Context, id core.JobExecutionID) error {
	return c.withExecution(ctx, id, func(s *operator.Service) error {
		e, err := s.Abandon(ctx, id)
		if err != nil {
			return c.env.refusal(err)
		}
		if c.env.format == formatJSON {
			return c.env.printJSON(c.env.executionRecord(*e))
		}
		return c.env.print(headline(*e) + "\n  its instance can no longer be restarted\n" + hintText(wording.HintLines(c.env.words().NextHints(e.Actions))))
	})
}

func (c operateCommands) recoverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "End executions of dead processes, so that they can be restarted",
		Long: `Finds executions without a process: their lease has expired, or their process was
on this host and is dead. They become FAILED, with their unfinished steps, and the
commands to restart them are printed. Live executions are not touched. A parked
execution that was asked to stop becomes STOPPED, unless a worker has a part of it.

"run" and "restart" do this for the instance that they launch. This command is for
executions that no one launches again: after the loss of a node, or before a
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
		err = &exitError{code: ExitFailed, err: err, hints: wording.HintLines([]wording.Hint{{Label: "where it can", Text: c.env.command("worker")}})}
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
	text := executionTable(ended, false) + "\n"
	for _, e := range ended {
		for _, line := range wording.HintLines(c.env.words().NextHints(e.Actions)) {
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
skipped items and checkpoints; an instance is deleted with its last execution, and
may then run again. Running executions are never deleted. The audit stays, and so do
the parameters that an incrementer continues. Only the leader of the workers deletes
tasks and events of inboxes; it also deletes old executions, after the days of
"settings set history_retention_days".

--instance deletes one instance with all of its executions, whatever their age and
status: its work in other tables stays, and it starts again when it is next run.`,
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
	f.IntVar(&o.req.KeepLast, "keep-last", 0, "keep the newest `N` instances of each job, whatever their age")
	f.BoolVar(&o.yes, "yes", false, "confirm --older-than 0s, which deletes every execution that has ended")
	f.BoolVar(&o.req.DryRun, "dry-run", false, "delete nothing, only count")
	c.env.addFormatFlag(cmd)
	completeFlag(cmd, "status", operator.StatusNames()...)
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
			return usage(fmt.Errorf("--older-than %s deletes every execution that has ended, even a moment ago: add --yes", o.olderThan),
				"how many that are:  "+c.env.command("purge", "--older-than", o.olderThan, "--dry-run"))
		}
		req.EndedBefore = c.env.now().Add(-age)
		when = " that ended before " + humanize.Time(req.EndedBefore)
	}
	purged := operator.Purged{DryRun: req.DryRun}
	err = c.env.read(ctx, func(s *Session) (err error) {
		purged, err = s.Service.Purge(ctx, req)
		return err
	})
	switch {
	case err == nil && req.Instance != 0 && purged.Instances == 0, req.Instance != 0 && errors.Is(err, core.ErrNotFound):
		return usage(fmt.Errorf("no instance %d in %s", req.Instance, c.env.databaseText(c.env.settings.Repository.Database)),
			"all executions:  "+c.env.command("list", "instances"))
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
	return c.env.print(fmt.Sprintf("%s %s, %s, %s, %s%s\n", verb, humanize.Plural(int(purged.Executions), "execution"),
		humanize.Plural(int(purged.Instances), "instance"), humanize.Plural(int(purged.Steps), "step"), humanize.Plural(int(purged.SkippedItems), "skipped item"), when))
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
			return req, usagef("--status %s: running executions are never purged", s)
		}
	}
	return req, nil
}
