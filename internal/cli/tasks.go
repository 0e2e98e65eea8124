package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

type taskCommands struct{ env *environment }

func (c taskCommands) tasksCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "Submit, list, show, cancel and rerun tasks, and wait for them",
		Long: `A task is a type and a payload. Workers with a handler of the type execute it, and
retry it if it fails. Tasks that are submitted together are a group.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.submitCommand(), c.listCommand(), c.showCommand(), c.statusCommand(), c.waitCommand(), c.cancelCommand(), c.rerunCommand(), c.workersCommand(), c.typesCommand(), c.logCommand())
	return cmd
}

func (c taskCommands) with(ctx context.Context, f func(s *runtime.TaskService) error) error {
	if err := c.env.configure(); err != nil {
		return err
	}
	return c.env.withSession(ctx, nil, func(s *Session) error {
		err := f(s.Tasks)
		refused, ok := errors.AsType[*operator.Refusal](err)
		if !ok {
			return err
		}
		code := operator.ExitCode(refused)
		if refused.Reason == refusal.NotFound || refused.Reason == refusal.IllegalState { // it is not for this task
			code = ExitFailed
		}
		return &exitError{code: code, err: refused.Err}
	})
}

func (c taskCommands) submitCommand() *cobra.Command {
	var wait time.Duration
	var key string
	var on []string
	cmd := &cobra.Command{
		Use:   "submit FILE",
		Short: "Submit a group of tasks",
		Long: `Submits the group of tasks in FILE; "-" is standard input. It is a JSON object, or the
list of its tasks alone:

  {"title": "...", "type": "shell", "idempotency_key": "...", "decider": "...",
   "budget": {"max_attempts": 5, "max_total_attempts": 0, "deadline": "1h", "max_no_progress": 50},
   "tasks": [{"type": "shell", "payload": {"script": "date"}, "title": "...", "priority": 2,
              "delay": "10s", "timeout": "5m", "idempotency_key": "...",
              "key": "clean", "after": ["fetch"], "on": {"disk": "eu1"}}]}

Only "tasks" is required. "after" names other tasks of the group by their "key", else by their
"idempotency_key": the task waits until they have succeeded, and is canceled if one fails. Only
workers with the labels of "on" execute a task ("worker --label disk=eu1"), or the worker of
that name. A second submission with the same idempotency_key returns the first one. With --wait
the exit code is that of "tasks wait".`,
		Example: "  " + c.env.app.Name + " tasks submit nightly.json --wait 10m",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkWait(cmd, wait); err != nil {
				return err
			}
			placement, err := placementOf(on)
			if err != nil {
				return err
			}
			return c.submit(cmd.Context(), args[0], key, placement, wait)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait until all have ended, at most for this `DURATION`")
	cmd.Flags().StringVar(&key, "key", "", "the idempotency `KEY` of the group, in place of the file's")
	cmd.Flags().StringSliceVar(&on, "on", nil, "the `WORKER` of tasks that name none: a label KEY=VALUE (repeat it for more), or its name")
	c.env.addFormatFlag(cmd)
	return cmd
}

func placementOf(texts []string) (*core.Placement, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	if len(texts) == 1 && !strings.Contains(texts[0], "=") && texts[0] != "" {
		return &core.Placement{Worker: texts[0]}, nil
	}
	labels, err := core.ParseLabels(texts)
	if err != nil {
		return nil, usagef("--on: %w", err)
	}
	return &core.Placement{Labels: labels}, nil
}

func checkWait(cmd *cobra.Command, wait time.Duration) error {
	if cmd.Flags().Changed("wait") && wait <= 0 {
		return usagef("--wait %v: more than 0", wait)
	}
	return nil
}

func (c taskCommands) submit(ctx context.Context, file, key string, on *core.Placement, wait time.Duration) error {
	text, err := c.readSubmission(file)
	if err != nil {
		return usage(err)
	}
	sub, err := runtime.ReadSubmission(text)
	if err != nil {
		return usage(fmt.Errorf("%s: %w", file, err))
	}
	if key != "" {
		sub.IdempotencyKey = key
	}
	for i := range sub.Tasks {
		if sub.Tasks[i].On == nil {
			sub.Tasks[i].On = on
		}
	}
	return c.with(ctx, func(s *runtime.TaskService) error { return c.submitted(ctx, s, sub, wait) })
}

func (c taskCommands) submitted(ctx context.Context, s *runtime.TaskService, sub task.Submission, wait time.Duration) error {
	accepted, err := s.Submit(ctx, sub)
	if err != nil {
		return err
	}
	for _, w := range accepted.Warnings {
		c.env.log.WarnContext(ctx, w)
	}
	if wait > 0 {
		return c.wait(ctx, s, accepted.Group, wait)
	}
	if c.env.format == formatJSON {
		return c.env.printJSON(accepted)
	}
	note := ""
	if accepted.Duplicate {
		note = " (submitted before)"
	}
	return c.env.print(fmt.Sprintf("group %d: %s, %s%s\n", accepted.Group, humanize.Plural(len(accepted.Tasks), "task"), idRange(accepted.Tasks), note))
}

const maxSubmission = 256 << 20

func (c taskCommands) readSubmission(file string) ([]byte, error) {
	in := c.env.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // it was read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxSubmission+1))
	if err == nil && len(text) > maxSubmission {
		err = fmt.Errorf("%s: it has more than %d MB", file, maxSubmission>>20)
	}
	return text, err
}

func idRange(ids []task.ID) string {
	if len(ids) == 0 {
		return ""
	}
	low, high := slices.Min(ids), slices.Max(ids)
	if low == high {
		return strconv.FormatInt(int64(low), 10)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

func (c taskCommands) waitCommand() *cobra.Command {
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "wait GROUP",
		Short: "Wait until a group of tasks has ended",
		Long: `Waits until the group has ended. The exit code is 0 if all of its tasks succeeded, 1
if one failed or the time is over, and 3 if the group was canceled.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseGroup(args[0])
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("timeout") && limit <= 0 {
				return usagef("--timeout %v: more than 0", limit)
			}
			return c.with(cmd.Context(), func(s *runtime.TaskService) error { return c.wait(cmd.Context(), s, id, limit) })
		},
	}
	cmd.Flags().DurationVar(&limit, "timeout", 0, "wait at most for this `DURATION`")
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c taskCommands) wait(ctx context.Context, s *runtime.TaskService, id task.GroupID, limit time.Duration) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("group %d is not over after %v", id, limit))
		defer cancel()
	}
	g, err := s.Wait(ctx, id)
	if err != nil {
		return err
	}
	if err := c.printGroup(*g); err != nil {
		return err
	}
	switch g.State {
	case task.GroupFailed:
		return &exitError{code: ExitFailed, err: fmt.Errorf("group %d: %s of %d failed", id, humanize.Plural(g.Failed, "task"), g.Total)}
	case task.GroupCancelled:
		return &exitError{code: ExitStopped, err: fmt.Errorf("group %d was cancelled", id)}
	case task.GroupCompleted, task.GroupRunning:
	}
	return nil
}

func (c taskCommands) statusCommand() *cobra.Command {
	var before int64
	limit := 20
	cmd := &cobra.Command{
		Use:   "status [GROUP]",
		Short: "Show the status of a group, or of the newest groups",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usagef("--limit %d: at least 1", limit)
			}
			return c.with(cmd.Context(), func(s *runtime.TaskService) error {
				if len(args) == 0 {
					return c.printGroups(cmd.Context(), s, task.GroupID(before), limit)
				}
				id, err := parseGroup(args[0])
				if err != nil {
					return err
				}
				g, err := s.Group(cmd.Context(), id)
				if err != nil {
					return err
				}
				return c.printGroup(*g)
			})
		},
	}
	cmd.Flags().Int64Var(&before, "before", 0, "only groups with a smaller number than `GROUP`: the next page")
	cmd.Flags().IntVar(&limit, "limit", limit, "at most `N` groups")
	c.env.addListFormatFlag(cmd)
	return cmd
}

func (c taskCommands) printGroup(g task.Group) error {
	if c.env.format == formatJSON {
		return c.env.printJSON(runtime.ViewGroup(g))
	}
	return c.printTable(groupColumns(), [][]string{groupRow(g)})
}

func (c taskCommands) printGroups(ctx context.Context, s *runtime.TaskService, before task.GroupID, limit int) error {
	groups, err := s.Groups(ctx, before, limit)
	if err != nil {
		return err
	}
	views, rows := make([]runtime.GroupView, 0, len(groups)), make([][]string, 0, len(groups))
	for _, g := range groups {
		views, rows = append(views, runtime.ViewGroup(g)), append(rows, groupRow(g))
	}
	if c.env.format == formatJSON {
		return c.env.printJSON(views)
	}
	return c.printTable(groupColumns(), rows)
}

func groupColumns() []column {
	return []column{
		{title: "group", right: true}, {title: "title"}, {title: "state"}, {title: "tasks", right: true},
		{title: "succeeded", right: true}, {title: "failed", right: true}, {title: "canceled", right: true}, {title: "created"},
	}
}

func groupRow(g task.Group) []string {
	return []string{
		strconv.FormatInt(int64(g.ID), 10), humanize.Clip(g.Title, 40), string(g.State), humanize.Count(g.Total),
		humanize.Count(g.Succeeded), humanize.Count(g.Failed), humanize.Count(g.Canceled), humanize.Time(g.CreatedAt),
	}
}

func (c taskCommands) printTable(columns []column, rows [][]string) error {
	if c.env.format == formatCSV {
		titles := make([]string, len(columns))
		for i, col := range columns {
			titles[i] = strings.ReplaceAll(col.title, " ", "_")
		}
		return c.env.printCSV(titles, rows)
	}
	return c.env.print(renderTable(columns, rows))
}

func parseGroup(text string) (task.GroupID, error) {
	n, err := parseNumber("GROUP", text)
	return task.GroupID(n), err
}

func parseNumber(what, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, usagef("%s %q: it must be a number", what, text)
	}
	return n, nil
}

func jsonText(value json.RawMessage) string { return humanize.OneLine(string(value)) }
