package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func (c taskCommands) listCommand() *cobra.Command {
	var f task.Filter
	var group, before int64
	var state, since, until string
	f.Limit = 50
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List tasks, newest first",
		Example: "  " + c.env.app.Name + " tasks list --group 3 --state FAILED",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.Limit < 1 {
				return usagef("--limit %d: at least 1", f.Limit)
			}
			f.Group, f.Before, f.State = task.GroupID(group), task.ID(before), task.State(strings.ToUpper(state))
			for _, of := range []struct {
				flag, text string
				into       *time.Time
			}{{"--since", since, &f.Since}, {"--until", until, &f.Until}} {
				var err error
				if of.text != "" {
					if *of.into, err = parseMoment(of.flag, of.text, c.env.now()); err != nil {
						return err
					}
				}
			}
			return c.with(cmd.Context(), func(s *runtime.TaskService) error { return c.list(cmd.Context(), s, f) })
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&group, "group", 0, "only tasks of the `GROUP` with this number")
	flags.StringVar(&state, "state", "", "only tasks in this `STATE`: "+humanize.Join(stateNames()))
	flags.StringVar(&f.Type, "type", "", "only tasks of this `TYPE`")
	flags.StringVar(&since, "since", "", "only tasks that were submitted at this `TIME` or later")
	flags.StringVar(&until, "until", "", "only tasks that were submitted before this `TIME`")
	flags.StringVar(&f.Text, "text", "", "only tasks with this `TEXT` in their type, title, key or last error")
	flags.Int64Var(&before, "before", 0, "only tasks with a smaller number than `TASK`: the next page")
	flags.IntVar(&f.Limit, "limit", f.Limit, "at most `N` tasks")
	completeFlag(cmd, "state", stateNames()...)
	c.env.addListFormatFlag(cmd)
	return cmd
}

func stateNames() []string {
	var names []string
	for _, s := range taskports.States() {
		names = append(names, strings.ToLower(string(s)))
	}
	return names
}

func (c taskCommands) list(ctx context.Context, s *runtime.TaskService, f task.Filter) error {
	found, err := s.Search(ctx, f)
	if err != nil {
		return err
	}
	list, waits := found.Tasks, found.Waits
	views, rows := make([]runtime.TaskView, 0, len(list)), make([][]string, 0, len(list))
	for _, t := range list {
		view := runtime.ViewTask(t)
		view.WaitsFor = waits[t.ID]
		views = append(views, view)
		rows = append(rows, []string{
			strconv.FormatInt(int64(t.ID), 10), strconv.FormatInt(int64(t.GroupID), 10), t.Spec.Type, humanize.Clip(t.Spec.Title, 40),
			string(t.State), humanize.Count(t.Attempts), humanize.Time(t.UpdatedAt), onText(t.Spec.On), waitsText(t, waits[t.ID]), humanize.Clip(humanize.OneLine(t.LastError), 60),
		})
	}
	if c.env.format == formatJSON {
		return c.env.printJSON(views)
	}
	if found.Next != 0 {
		c.env.log.InfoContext(ctx, fmt.Sprintf("there may be more: --before %d", found.Next))
	}
	return c.printTable([]column{
		{title: "task", right: true}, {title: "group", right: true}, {title: "type"}, {title: "title"}, {title: "state"},
		{title: "attempts", right: true}, {title: "updated"}, {title: "on"}, {title: "waits for"}, {title: "last error"},
	}, rows)
}

func (c taskCommands) showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show TASK",
		Short: "Show a task with its attempts, their artifacts, and the decisions",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseNumber("TASK", args[0])
			if err != nil {
				return err
			}
			return c.with(cmd.Context(), func(s *runtime.TaskService) error { return c.show(cmd.Context(), s, task.ID(id)) })
		},
	}
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c taskCommands) logCommand() *cobra.Command {
	var f taskports.LogFilter
	cmd := &cobra.Command{
		Use:   "log TASK",
		Short: "Print the output that a task has left",
		Long:  `Prints the standard output, or else the standard error, that the handler of the newest attempt with an output has left.`,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseNumber("TASK", args[0])
			if err != nil {
				return err
			}
			f.Task = task.ID(id)
			if f.Output != "" {
				f.Output = task.ArtifactKind(strings.ToUpper(string(f.Output[:1])) + strings.ToLower(string(f.Output[1:])))
			}
			return c.with(cmd.Context(), func(s *runtime.TaskService) error { return c.printLog(cmd.Context(), s, f) })
		},
	}
	cmd.Flags().IntVar(&f.Attempt, "attempt", 0, "of the attempt with this `NUMBER`")
	cmd.Flags().StringVar((*string)(&f.Output), "output", "", "`stdout` or stderr")
	return cmd
}

func (c taskCommands) printLog(ctx context.Context, s *runtime.TaskService, f taskports.LogFilter) error {
	for {
		page, err := s.Log(ctx, f)
		if err != nil {
			return err
		}
		if err := c.env.print(page.Text); err != nil || page.Next == 0 {
			return err
		}
		f.From, f.Attempt, f.Output = page.Next, page.Attempt, task.ArtifactKind(page.Output)
	}
}

type taskRecord struct {
	runtime.TaskView
	WaitsFor  string                 `json:"waits_for,omitempty"`
	History   []runtime.AttemptView  `json:"history"`
	Decisions []runtime.DecisionView `json:"decisions"`
}

func (c taskCommands) show(ctx context.Context, s *runtime.TaskService, id task.ID) error {
	t, err := s.Task(ctx, id)
	if err != nil {
		return err
	}
	attempts, err := s.Attempts(ctx, id)
	if err != nil {
		return err
	}
	decisions, err := s.Decisions(ctx, id)
	if err != nil {
		return err
	}
	waits, err := s.WaitingFor(ctx, t)
	if err != nil {
		return err
	}
	r := taskRecord{runtime.ViewTask(*t), waits, make([]runtime.AttemptView, 0, len(attempts)), make([]runtime.DecisionView, 0, len(decisions))}
	for _, a := range attempts {
		r.History = append(r.History, runtime.ViewAttempt(a))
	}
	for _, d := range decisions {
		r.Decisions = append(r.Decisions, runtime.ViewDecision(d))
	}
	if c.env.format == formatJSON {
		return c.env.printJSON(r)
	}
	return c.env.print(taskText(r))
}

func waitsText(t task.Task, worker string) string {
	if worker != "" {
		return humanize.OneLine(worker)
	}
	return humanize.Clip(t.WaitsFor(), 60)
}

func onText(on *core.Placement) string {
	if on == nil {
		return ""
	}
	return on.String()
}

func taskText(r taskRecord) string {
	var b strings.Builder
	fmt.Fprintf(&b, "task %d of group %d: %s, %s\n", r.ID, r.GroupID, r.Spec.Type, r.State)
	for _, line := range [][2]string{
		{"title", r.Spec.Title}, {"key", r.Spec.Key}, {"after", strings.Join(r.Spec.After, ", ")}, {"payload", jsonText(r.Spec.Payload)}, {"last error", humanize.OneLine(r.LastError)}, {"on", onText(r.Spec.On)}, {"worker", r.Worker},
		{"waits for", r.WaitsFor},
		{"created", humanize.Time(r.CreatedAt)},
	} {
		if line[1] != "" {
			fmt.Fprintf(&b, "  %-11s %s\n", line[0], line[1])
		}
	}
	if r.NextRunAt != nil && !r.State.IsOver() {
		fmt.Fprintf(&b, "  %-11s %s\n", "next run", humanize.Time(*r.NextRunAt))
	}
	for _, a := range r.History {
		b.WriteString(attemptText(a))
		for _, d := range r.Decisions {
			if d.Attempt == a.ID {
				b.WriteString(decisionText(d))
			}
		}
	}
	for _, d := range r.Decisions {
		if d.Attempt == 0 {
			b.WriteString(decisionText(d))
		}
	}
	return b.String()
}

func attemptText(a runtime.AttemptView) string {
	var b strings.Builder
	took := ""
	if a.EndedAt != nil {
		took = ", took " + humanize.Duration(a.EndedAt.Sub(a.StartedAt))
	}
	fmt.Fprintf(&b, "attempt %d: %s on %s, %s%s\n", a.Number, a.State, a.Worker, humanize.Time(a.StartedAt), took)
	if a.Reason != "" {
		fmt.Fprintf(&b, "  %s\n", humanize.OneLine(a.Reason))
	}
	if a.Outcome == nil {
		return b.String()
	}
	for _, artifact := range a.Outcome.Artifacts {
		text := artifact.Text
		if artifact.Kind == task.KindJSON {
			text = string(artifact.JSON)
		}
		if text != "" {
			fmt.Fprintf(&b, "  %s: %s\n", artifact.Kind, strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    "))
		}
	}
	return b.String()
}

func decisionText(d runtime.DecisionView) string {
	what := "try again after " + humanize.Duration(timeOf(d.Decision.Delay))
	if d.Decision.Dead {
		what = "no other attempt"
	}
	return fmt.Sprintf("  decided by %s: %s (%s)\n", d.Policy, what, humanize.OneLine(d.Decision.Reason))
}
