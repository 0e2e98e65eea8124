package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

func (p *program) stopCommand() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "stop EXECUTION",
		Short: "Ask a running execution to stop, wherever it runs",
		Long: `Asks the process that runs EXECUTION to stop: it commits the chunk in hand, and
the execution ends STOPPED. It can be restarted. The request is stored in the
database, so that it may be made on any host.

With --wait the command waits until the execution is over, and its exit code is
that of the execution: 3 for one that stopped, 0 for one that completed all the
same. Without, it is 0 as soon as the request is stored.`,
		Example:           "  " + p.app.Name + " stop 12 --wait 5m",
		Args:              oneExecution,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("wait") && wait <= 0 {
				return usagef("--wait %v: more than 0", wait)
			}
			return p.stop(cmd.Context(), id, wait)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait until it is over, at most for this `DURATION`")
	p.addFormatFlag(cmd)
	return cmd
}

func (p *program) stop(ctx context.Context, id core.JobExecutionID, wait time.Duration) error {
	return p.operate(ctx, id, func(s *Session, o *job.Operator, e *core.JobExecution) error {
		if e.Status.IsOver() {
			return p.overAlready(e)
		}
		asked, err := o.Stop(ctx, id)
		if err != nil {
			if now, reading := s.Repository.Execution(ctx, id); reading == nil && now.Status.IsOver() {
				return p.overAlready(now) // it ended at this very moment
			}
			return err
		}
		if wait == 0 {
			return p.printStopping(asked)
		}
		return p.awaitEnd(ctx, s, asked, wait)
	})
}

func (p *program) overAlready(e *core.JobExecution) error {
	hints := []string{"what it did:  " + p.command("show", idText(e.ID))}
	if restartable(e.Status) {
		hints = append(hints, "restart it:   "+p.restartLine(*e, "FILE"))
	}
	return &exitError{code: ExitFailed, err: fmt.Errorf("execution %d is over (%s): there is nothing to stop", e.ID, e.Status), hints: hints}
}

// printStopping says what will happen.
func (p *program) printStopping(e *core.JobExecution) error {
	if p.format == formatJSON {
		return p.printJSON(p.executionRecord(p.viewOf(*e)))
	}
	text := headline(p.viewOf(*e)) + "\n"
	if job.DeadOwner(e.Owner) {
		return p.print(text + fmt.Sprintf("  its process %d is dead: nobody is left to stop\n", e.Owner.PID) +
			p.hintText([]string{"end it:  " + p.command("recover")}))
	}
	text += fmt.Sprintf("  process %d on %s commits the chunk in hand, and ends\n", e.Owner.PID, e.Owner.Host)
	return p.print(text + p.hintText([]string{
		"wait for it:   " + p.command("stop", idText(e.ID), "--wait", "5m"),
		"what it does:  " + p.command("show", idText(e.ID)),
	}))
}

// The time between two looks at an execution that is to end, at first and at most.
const (
	firstLook = 20 * time.Millisecond
	mostLooks = time.Second
)

// awaitEnd returns when the execution is over, as a run of it would have.
func (p *program) awaitEnd(ctx context.Context, s *Session, e *core.JobExecution, wait time.Duration) error {
	p.log.InfoContext(ctx, "waiting for its end", "execution", int64(e.ID), "process", e.Owner.PID, "host", e.Owner.Host, "at_most", wait.String())
	id, owner := e.ID, e.Owner
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for pause := firstLook; e.Status.IsRunning(); pause = min(2*pause, mostLooks) {
		dead := job.DeadOwner(e.Owner)
		var err error
		e, err = s.Repository.Execution(ctx, id)
		switch {
		case ctx.Err() != nil:
			return p.stillRunning(id, owner, wait)
		case err != nil:
			return fmt.Errorf("read execution %d: %w", id, err)
		case e.Status.IsRunning() && dead: // it was dead before we looked: it wrote no end
			return &exitError{code: ExitFailed, err: fmt.Errorf("execution %d: its process %d is dead, and left it %s", id, e.Owner.PID, e.Status),
				hints: []string{"end it:  " + p.command("recover")}}
		case e.Status.IsRunning():
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
	if err := p.printEnd(e); err != nil {
		return err
	}
	return p.explain(e, nil, "FILE", nil)
}

func (p *program) printEnd(e *core.JobExecution) error {
	if p.format == formatJSON {
		return p.printJSON(p.executionRecord(p.viewOf(*e)))
	}
	return p.print(headline(p.viewOf(*e)) + "\n")
}

func (p *program) stillRunning(id core.JobExecutionID, owner core.Owner, wait time.Duration) error {
	return &exitError{code: ExitFailed, err: errors.New("execution " + idText(id) + " still runs after " + wait.String() + ": it was asked to stop"),
		hints: []string{
			"what it does:  " + p.command("show", idText(id)),
			"wait longer:   " + p.command("stop", idText(id), "--wait", "1h"),
			fmt.Sprintf("end it hard:   kill %d (on %s), then %s", owner.PID, owner.Host, p.command("recover")),
		}}
}
