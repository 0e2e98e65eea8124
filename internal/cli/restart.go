package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (c runCommands) restartCommand() *cobra.Command {
	var req operator.RestartRequest
	cmd := &cobra.Command{
		Use:   "restart EXECUTION [NAME=VALUE ...]",
		Short: "Restart a failed or stopped execution, with its parameters",
		Long: `Makes another attempt of the instance of EXECUTION, with the same parameters: it
passes complete steps and resumes the incomplete one after its last committed
chunk. --from-start runs every step from its start instead.

NAME=VALUE changes a parameter that is not identifying, and NAME=@FILE gives a
secret one. Another value of an identifying parameter is refused, because it names
another instance.

--from STEP runs STEP and every step after it again, although they completed. The
steps before STEP keep their results, and later decisions are taken again. STEP is
a step or another element of the flow that an attempt has reached; an element of an
atomic group stands for the group. Committed rows stay. See the plan first with
--dry-run.

EXECUTION must be the newest of its instance, and FAILED or STOPPED: one that
completed, was abandoned or has an unknown outcome is refused with exit code 1.
With --if-complete, --from also accepts one that completed.

The job file is read from its former path, or from --file. It may have changed; the
log lists the changes. A step without committed work runs by its new definition. If
a change affects committed work, the restart is refused with the difference, unless
you --accept-changes.`,
		Example: "  " + c.env.app.Name + " restart 12\n  " + c.env.app.Name + " restart 12 limit=5000",
		Args: func(cmd *cobra.Command, args []string) error {
			return oneExecution(cmd, args[:min(1, len(args))])
		},
		ValidArgsFunction: c.env.completeExecution,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if req.Execution, err = parseExecution(args[0]); err != nil {
				return err
			}
			switch {
			case req.IfComplete && req.From == "":
				return usagef("--if-complete is for --from STEP")
			case req.From != "" && req.FromStart:
				return usagef("--from and --from-start: one of them")
			}
			if req.Params, err = parseParameters(args[1:]); err != nil {
				return err
			}
			req.Folder, req.Given = c.env.dir, readSecrets
			return c.restart(cmd.Context(), req)
		},
	}
	cmd.Flags().StringVar(&req.File, "file", "", "the job `FILE` (default: the one that the execution was started with)")
	cmd.Flags().StringVar(&req.From, "from", "", "run `STEP` and all steps after it again, although they completed")
	cmd.Flags().BoolVar(&req.IfComplete, "if-complete", false, "with --from: even if the execution completed")
	cmd.Flags().BoolVar(&req.FromStart, "from-start", false, "run every step from its start, even complete ones")
	cmd.Flags().BoolVar(&req.AcceptChanges, "accept-changes", false, "restart although changes of the job file, or of an input file, affect committed work")
	addReasonFlag(c.env, cmd)
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c runCommands) restart(ctx context.Context, req operator.RestartRequest) error {
	return c.env.aboutExecution(req.Execution, func() error {
		return c.runToEnd(ctx, func(ctx context.Context, s *operator.Service, hooks operator.Hooks) (*operator.Execution, error) {
			req.Hooks = hooks
			running, err := s.Restart(ctx, req)
			if err != nil {
				return nil, err
			}
			return running.Follow(ctx, hooks.Stop)
		})
	})
}

func (env *environment) notFound(err error, id core.JobExecutionID) error {
	if errors.Is(err, core.ErrNotFound) {
		return usage(fmt.Errorf("no execution %d in %s", id, env.databaseText(env.settings.Repository.Database)),
			"all executions:  "+env.command("list"))
	}
	return err
}

func oneExecution(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage(errors.New("which execution? one number is expected"), "usage:  "+cmd.UseLine())
	}
	return nil
}

func parseExecution(text string) (core.JobExecutionID, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, usagef("%q is not an execution: a number such as 12 is expected", text)
	}
	return core.JobExecutionID(id), nil
}
