package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (c runCommands) backfillCommand() *cobra.Command {
	var o backfillFlags
	req := &o.request.BackfillRequest
	cmd := &cobra.Command{
		Use:   "backfill FILE NAME=FIRST..LAST [NAME=VALUE ...]",
		Short: "Run the instances of a range of days or numbers",
		Long: `Runs the job of FILE once for each value of a parameter of type date or int, from
FIRST to LAST, both included; FIRST..LAST/7 takes each seventh one. An instance that is
complete is skipped, and one that failed or stopped resumes: run the command again
until all of them are complete.

All parameters are checked before the first launch. If an instance fails, the others
still run, and the exit code is 1. Instances that exclude each other (exclusive) wait for
each other, and at most --wait for an execution of another process. An interrupt stops
the running instances and starts no others.

--as-tasks submits a task for each instance that is not complete, up to 1,000: workers
run them, at most --parallel at once on all of them. The tasks are a group: "tasks list
--group" shows the result of each, and "tasks cancel --group" ends the rest. Workers must
know the job: it is registered, or its file is in the history. --dry-run shows the effect
on each value.`,
		Example: "  " + c.env.app.Name + " backfill jobs/nightly.yaml date=2026-11-01..2026-11-20 --parallel 4\n" +
			"  " + c.env.app.Name + " backfill jobs/nightly.yaml date=2026-11-01..2026-11-20 --as-tasks --only missing --dry-run",
		Args: c.fileAndParameters,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.backfill(cmd.Context(), o, args)
		},
	}
	cmd.Flags().IntVar(&req.Parallel, "parallel", 1, "run `N` instances at once")
	cmd.Flags().DurationVar(&req.Wait, "wait", operator.DefaultKeyWait, "wait at most this `DURATION` for an execution of another process that excludes this job")
	cmd.Flags().BoolVar(&req.AcceptChanges, "accept-changes", false, "resume instances although changes of the job file, or of an input file, affect committed work")
	cmd.Flags().BoolVar(&o.asTasks, "as-tasks", false, "let workers run the instances, each as a task")
	cmd.Flags().StringVar(&o.request.Only, "only", operator.OnlyAll, "with --as-tasks, `WHICH` instances run: missing, failed or all")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "with --as-tasks, only show the effect on each value")
	cmd.Flags().IntVar(&o.request.Expect, "expect", 0, "with --as-tasks, do nothing unless `N` instances would run")
	completeFlag(cmd, "only", operator.OnlyMissing, operator.OnlyFailed, operator.OnlyAll)
	addReasonFlag(c.env, cmd)
	c.env.addFormatFlag(cmd)
	return cmd
}

type backfillFlags struct {
	request         operator.BackfillTasksRequest
	asTasks, dryRun bool
}

func (o *backfillFlags) check() error {
	if !o.asTasks && (o.dryRun || o.request.Expect != 0 || o.request.Only != operator.OnlyAll) {
		return usagef("--dry-run, --expect and --only need --as-tasks")
	}
	return nil
}

func (c runCommands) backfill(ctx context.Context, o backfillFlags, args []string) (err error) {
	req := o.request.BackfillRequest
	if err := o.check(); err != nil {
		return err
	}
	if req.Parallel < 1 {
		return usagef("--parallel %d: at least 1 is needed", req.Parallel)
	}
	if req.Wait <= 0 {
		return usagef("--wait %v: more than 0", req.Wait)
	}
	req.File, req.Checked, req.Folder = args[0], c.env.app.Files[args[0]], c.env.dir
	if err := rangeParameters(&req, args[1:]); err != nil {
		return err
	}
	if req.Checked, err = c.env.loadJobFile(req.File); err != nil {
		return err
	}
	if o.asTasks {
		o.request.BackfillRequest = req
		return c.backfillTasks(ctx, o)
	}
	if err := readSecrets(req.Checked.Parameters(), req.Params); err != nil {
		return err
	}
	if err := c.env.configure(); err != nil {
		return err
	}
	ignoreBrokenPipes()
	c.env.announceDatabase(ctx)
	log := c.env.newEventLog(nil)
	return c.env.withSession(ctx, log, func(s *Session) error {
		ctx, signals := c.env.obeySignals(ctx)
		defer signals.end()
		req.Hooks = operator.Hooks{Stop: signals.stop, OnNotice: func(n operator.Notice) { c.logNotice(ctx, n) }}
		all, err := s.Service.Backfill(ctx, req)
		if all == nil || len(all.Runs) == 0 && err != nil {
			return c.env.refusal(err)
		}
		return errors.Join(c.printBackfill(req.Param, all.Runs), c.backfillEnd(all, err))
	})
}

func (c runCommands) backfillTasks(ctx context.Context, o backfillFlags) error {
	if err := c.env.configure(); err != nil {
		return err
	}
	return c.env.withSession(ctx, nil, func(s *Session) error {
		if o.dryRun {
			plan, err := s.Service.PlanBackfill(ctx, o.request)
			if err != nil {
				return c.env.refusal(wrongFlag(err))
			}
			return c.printBackfillPlan(plan)
		}
		sub, err := s.Service.BackfillTasks(ctx, o.request)
		if err != nil {
			return c.env.refusal(wrongFlag(err))
		}
		return taskCommands(c).submitActs(ctx, s, sub)
	})
}

func (c runCommands) printBackfillPlan(plan *operator.BackfillPlan) error {
	if c.env.format == formatJSON {
		return c.env.printJSON(plan)
	}
	rows := make([][]string, 0, len(plan.Items))
	for i := range plan.Items {
		rows = append(rows, []string{plan.Items[i].Value, wording.BackfillEffect(&plan.Items[i])})
	}
	return c.env.print(renderTable([]column{{title: plan.Param}, {title: "effect"}}, rows) +
		fmt.Sprintf("%s, %d to run\n", humanize.Plural(len(rows), "value"), plan.Selected))
}

func rangeParameters(req *operator.BackfillRequest, words []string) error {
	var others []string
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		first, rest, isRange := strings.Cut(value, "..")
		if !isRange || first == "" || rest == "" || strings.HasPrefix(rest, "/") { // ../in.csv is a path
			others = append(others, word)
			continue
		}
		if req.Param != "" {
			return usagef("%s and %s are ranges: a backfill has one", req.Param, name)
		}
		last, every, stepped := strings.Cut(rest, "/")
		req.Param, req.From, req.To = name, first, last
		if stepped {
			step, err := strconv.ParseInt(every, 10, 64)
			if err != nil || step < 1 {
				return usagef("%s: %q is not a step: a number of 1 or more must follow /", word, every)
			}
			req.Step = step
		}
	}
	if req.Param == "" {
		return usagef("no range is given, such as date=2026-11-01..2026-11-20")
	}
	var err error
	if req.Params, err = parseParameters(others); err != nil {
		return err
	}
	if value, twice := req.Params[req.Param]; twice {
		return usagef("%s is given twice: as a range, and as %s", req.Param, value)
	}
	return nil
}

func (c runCommands) printBackfill(param string, runs []operator.BackfillRun) error {
	if c.env.format == formatJSON {
		return c.env.printJSON(runs)
	}
	columns := []column{
		{title: param}, {title: "execution", right: true}, {title: "status"}, {title: "attempt", right: true},
		{title: "read", right: true}, {title: "written", right: true}, {title: "time", right: true}, {title: "error"},
	}
	rows := make([][]string, len(runs))
	for i, r := range runs {
		switch e := r.Execution; {
		case r.Skipped:
			rows[i] = []string{r.Value, "", "complete already", "", "", "", "", ""}
		case e != nil:
			rows[i] = []string{
				r.Value, wording.ID(e.ID), string(e.Status), strconv.Itoa(e.Attempt), humanize.Count(r.Read), humanize.Count(r.Written), humanize.Seconds(e.Duration),
				firstLine(cmp.Or(r.Problem, e.Error)),
			}
		default:
			rows[i] = []string{r.Value, "", "not run", "", "", "", "", firstLine(r.Problem)}
		}
	}
	return c.env.print(renderTable(columns, rows))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func (c runCommands) backfillEnd(all *operator.Backfilled, err error) error {
	failed := all.Failed()
	again := wording.HintLines([]wording.Hint{{Label: "continue", Text: "run the command again: complete instances are skipped"}})
	switch {
	case err != nil:
		return &exitError{code: ExitFailed, err: fmt.Errorf("the backfill ended early: %w", err), hints: again}
	case all.NotBegun > 0:
		return &exitError{code: ExitStopped, err: fmt.Errorf("the backfill stopped: %d of %d instances were begun, and %d of them are not complete",
			len(all.Runs), len(all.Runs)+all.NotBegun, failed), hints: again}
	case failed > 0:
		return &exitError{code: endOfFailed(all.Runs), err: fmt.Errorf("%d of %d instances are not complete", failed, len(all.Runs)), hints: again}
	}
	return nil
}

func endOfFailed(runs []operator.BackfillRun) int {
	for _, r := range runs {
		if r.Failed() && (r.Execution == nil || r.Execution.Status != core.StatusStopped) {
			return ExitFailed
		}
	}
	return ExitStopped
}
