package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func timeOf(s runtime.Span) time.Duration { return time.Duration(s) }

func (c taskCommands) cancelCommand() *cobra.Command {
	var by runtime.By
	group := false
	cmd := &cobra.Command{
		Use:   "cancel TASK",
		Short: "Cancel a task, or with --group all unfinished tasks of a group",
		Long: `Cancels an unfinished task. The worker that executes it is notified at its next
heartbeat, and ends it.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseNumber("TASK", args[0])
			if err != nil {
				return err
			}
			return c.with(cmd.Context(), func(s *runtime.TaskService) error {
				if group {
					acted, err := s.CancelGroup(cmd.Context(), task.GroupID(id), by)
					return c.printActed(fmt.Sprintf("group %d: cancellation requested", id), acted, err)
				}
				acted, err := s.Cancel(cmd.Context(), task.ID(id), by)
				return c.printActed(fmt.Sprintf("task %d", id), acted, err)
			})
		},
	}
	cmd.Flags().BoolVar(&group, "group", false, "the number names a group")
	cmd.Flags().StringVar(&by.Reason, "reason", "", "reason for the audit: a `TEXT`")
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c taskCommands) rerunCommand() *cobra.Command {
	var by runtime.By
	cmd := &cobra.Command{
		Use:   "rerun TASK",
		Short: "Execute a task again that failed, timed out or was canceled",
		Long: `Executes the task again. Its earlier attempts are kept, and counting starts again. Tasks
that were canceled because they waited for it wait again. A task is refused if it succeeded,
if its worker has not released it, or if it waits for a task that ended without success.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseNumber("TASK", args[0])
			if err != nil {
				return err
			}
			return c.with(cmd.Context(), func(s *runtime.TaskService) error {
				acted, err := s.Rerun(cmd.Context(), task.ID(id), by)
				return c.printActed(fmt.Sprintf("task %d", id), acted, err)
			})
		},
	}
	cmd.Flags().StringVar(&by.Reason, "reason", "", "reason for the audit: a `TEXT`")
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c taskCommands) printActed(what string, acted *runtime.Acted, err error) error {
	if err != nil {
		return err
	}
	if c.env.format == formatJSON {
		return c.env.printJSON(acted)
	}
	if acted.State != "" {
		what += ": " + string(acted.State)
	}
	if acted.Answer == "duplicate" {
		what += " (it was so already)"
	}
	return c.env.print(what + "\n")
}
