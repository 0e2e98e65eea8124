package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (c operateCommands) stopCommand() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "stop EXECUTION",
		Short: "Ask a running execution to stop, wherever it runs",
		Long: `Asks the process that runs EXECUTION to stop. The request is stored in the
database, so you can make it on any host, and every step, part, branch, child job
and task checks for it before it starts: none starts after the request, except the
steps of 'finally'. A running chunk step commits its current chunk; any other step
returns by itself. Then the execution ends STOPPED, or COMPLETED if that step was
its last. A stopped execution can be restarted.

With --wait the command waits until the execution has ended, and returns its exit
code: 3 if it stopped, 0 if it still completed. Without --wait the exit code is 0 as
soon as the request is stored.

A parked execution has no process. If no worker has a part of it, this command ends
it, including the steps of 'finally'.`,
		Example:           "  " + c.env.app.Name + " stop 12 --wait 5m",
		Args:              oneExecution,
		ValidArgsFunction: c.env.completeExecution,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("wait") && wait <= 0 {
				return usagef("--wait %v: more than 0", wait)
			}
			return c.stop(cmd.Context(), id, wait)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait until it has ended, at most for this `DURATION`")
	addReasonFlag(c.env, cmd)
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c operateCommands) stop(ctx context.Context, id core.JobExecutionID, wait time.Duration) error {
	return c.withExecution(ctx, id, func(s *operator.Service) error {
		asked, err := s.Stop(ctx, id)
		notEnded, others := errors.AsType[*operator.NotEndedError](err)
		switch {
		case others && wait == 0:
			return &exitError{code: ExitFailed, err: notEnded, hints: wording.HintLines(c.elsewhere())}
		case others:
			c.env.log.WarnContext(ctx, "waiting for a worker to end it", "error", humanize.OneLine(notEnded.Error()))
		case err != nil:
			return c.env.refusal(err)
		}
		if wait == 0 {
			return c.printStopping(ctx, s, asked)
		}
		return c.awaitEnd(ctx, s, asked, wait)
	})
}

func (c operateCommands) elsewhere() []wording.Hint {
	return []wording.Hint{{Label: "where it can", Text: c.env.command("worker")}, {Label: "or", Text: c.env.command("recover")}}
}

func (c operateCommands) printStopping(ctx context.Context, s *operator.Service, e *operator.Execution) error {
	if c.env.format == formatJSON {
		return c.env.printJSON(c.env.executionRecord(*e))
	}
	text := headline(*e) + "\n"
	switch {
	case e.Owner == nil && !e.Status.IsOver(): // it is parked
		return c.env.print(text + "  the workers that run its partitions commit their current chunks; then a worker ends it\n" +
			hintText(wording.HintLines([]wording.Hint{{Label: "or do so here", Text: c.env.command("stop", wording.ID(e.ID), "--wait", "5m")}})))
	case e.Owner == nil: // it has just ended
		return c.env.print(text)
	case e.Owner.Dead:
		return c.env.print(text + fmt.Sprintf("  its process %d is dead: no process is left to stop\n", e.Owner.PID) +
			hintText(wording.HintLines([]wording.Hint{{Label: "end it", Text: c.env.command("recover")}})))
	}
	running, err := stillRunning(ctx, s, e.ID)
	if err != nil {
		return err
	}
	text += fmt.Sprintf("  %s starts no further step, part or task, except for steps of finally\n  %s\n", wording.Process(e.Owner.PID, e.Owner.Host), running)
	return c.env.print(text + hintText(wording.HintLines([]wording.Hint{
		{Label: "wait for it", Text: c.env.command("stop", wording.ID(e.ID), "--wait", "5m")},
		{Label: "its progress", Text: c.env.command("show", wording.ID(e.ID))},
	})))
}

func stillRunning(ctx context.Context, s *operator.Service, id core.JobExecutionID) (string, error) {
	e, err := s.Show(ctx, operator.ShowRequest{Execution: id})
	if err != nil {
		return "", err
	}
	var names []string
	for _, step := range e.Steps {
		if step.Status.IsRunning() {
			names = append(names, step.Step)
		}
	}
	if len(names) == 0 {
		return "no step is running", nil
	}
	return "running: " + strings.Join(names, ", ") + "; a chunk step commits its current chunk, any other step returns by itself", nil
}

func (c operateCommands) awaitEnd(ctx context.Context, s *operator.Service, e *operator.Execution, wait time.Duration) error {
	if e.Owner != nil {
		c.env.log.InfoContext(ctx, "waiting for its end", "execution", int64(e.ID), "process", e.Owner.PID, "host", e.Owner.Host, "at_most", wait.String())
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ended, err := s.AwaitEnd(limited, e.ID)
	switch {
	case limited.Err() != nil && err != nil:
		return c.notYetOver(e, wait)
	case err != nil:
		return err
	case !ended.Status.IsOver(): // its process was already dead: it wrote no end
		return &exitError{code: ExitFailed, err: fmt.Errorf("execution %d: its process %d is dead, and left it %s", e.ID, ended.Owner.PID, ended.Status),
			hints: wording.HintLines([]wording.Hint{{Label: "end it", Text: c.env.command("recover")}})}
	}
	if err := c.printEnd(ended); err != nil {
		return err
	}
	return runCommands(c).endOf(ended, nil, nil)
}

func (c operateCommands) printEnd(e *operator.Execution) error {
	if c.env.format == formatJSON {
		return c.env.printJSON(c.env.executionRecord(*e))
	}
	return c.env.print(headline(*e) + "\n")
}

func (c operateCommands) notYetOver(e *operator.Execution, wait time.Duration) error {
	hints := []wording.Hint{
		{Label: "its progress", Text: c.env.command("show", wording.ID(e.ID))},
		{Label: "wait longer", Text: c.env.command("stop", wording.ID(e.ID), "--wait", "1h")},
	}
	if e.Owner != nil {
		hints = append(hints, wording.Hint{Label: "end it hard", Text: fmt.Sprintf("kill %d (on %s), then %s", e.Owner.PID, e.Owner.Host, c.env.command("recover"))})
	}
	return &exitError{code: ExitFailed, hints: wording.HintLines(hints),
		err: errors.New("execution " + wording.ID(e.ID) + " still runs after " + wait.String() + ": it was asked to stop")}
}
