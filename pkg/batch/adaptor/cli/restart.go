package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

func (p *program) restartCommand() *cobra.Command {
	var l launch
	cmd := &cobra.Command{
		Use:   "restart EXECUTION",
		Short: "Go on with a failed or stopped execution, with its parameters",
		Long: `Makes another attempt of the instance of EXECUTION, with the same parameters: it
passes the steps that are complete and goes on with the one that is not, behind
the last committed chunk. --from-start runs everything anew instead.

EXECUTION is the newest of its instance, and FAILED or STOPPED: one that
completed, was abandoned or has an unknown outcome is refused with exit code 1.

The job file is read from where it was at that time, or from --file. It may have
changed; a warning says what. Where that touches what was done already, the
restart is refused unless you --accept-changes.`,
		Example:           "  " + p.app.Name + " restart 12",
		Args:              oneExecution,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			return p.restart(cmd.Context(), id, l)
		},
	}
	cmd.Flags().StringVar(&l.path, "file", "", "the job `FILE` (default: the one that the execution was started with)")
	cmd.Flags().BoolVar(&l.fromStart, "from-start", false, "go on with nothing: run every step anew, whatever is complete")
	cmd.Flags().BoolVar(&l.accept, "accept-changes", false, "go on though the job file has changed in what was done already, or a file behind what was read of it")
	p.addFormatFlag(cmd)
	return cmd
}

func (p *program) restart(ctx context.Context, id core.JobExecutionID, l launch) error {
	if err := p.configure(); err != nil {
		return err
	}
	var newest *core.JobExecution
	exec, err := p.executionWith(ctx, id, func(s *Session, e *core.JobExecution) (err error) {
		newest, err = s.Repository.LastExecution(ctx, e.JobName, e.Params.Key())
		return err
	})
	if err != nil {
		return err
	}
	if err := p.checkRestart(exec, newest); err != nil {
		return err
	}
	if l.path == "" {
		if l.path = exec.Definition.Path; l.path == "" {
			return usage(fmt.Errorf("execution %d does not know its job file", id),
				"name it:  "+p.command("restart", idText(id), "--file", "FILE"))
		}
	}
	if l.file, err = p.load(l.path); err != nil {
		return withHint(err, "another file:  "+p.command("restart", idText(id), "--file", "FILE"))
	}
	if l.params, err = parametersAgain(l.file, exec, nil); err != nil {
		return err
	}
	return p.perform(ctx, l)
}

// checkRestart refuses what is not to be restarted. What runs is for the launch to
// judge: its owner may be dead.
func (p *program) checkRestart(exec, newest *core.JobExecution) error {
	look := "what it did:  " + p.command("show", idText(exec.ID))
	switch {
	case exec.RedriveOf != 0:
		return usage(fmt.Errorf("execution %d is a redrive of execution %d: it goes on as one", exec.ID, exec.RedriveOf),
			"go on:  "+p.redriveLine(*exec))
	case exec.Status == core.StatusCompleted:
		return &exitError{code: ExitFailed, err: &core.InstanceCompleteError{Execution: *exec}, hints: append([]string{look}, p.anewHints(*exec)...)}
	case exec.Status == core.StatusAbandoned:
		return &exitError{code: ExitFailed, err: fmt.Errorf("execution %d: %w", exec.ID, core.ErrAbandoned), hints: append([]string{look}, p.anewHints(*exec)...)}
	case exec.Status == core.StatusUnknown:
		return &exitError{code: ExitFailed, err: fmt.Errorf("execution %d: %w", exec.ID, core.ErrUnknownStatus),
			hints: append([]string{look, "give it up:  " + p.command("abandon", idText(exec.ID)) + "   (once you have looked)"}, p.anewHints(*exec)...)}
	case newest.ID != exec.ID:
		hints := []string{"what that did:  " + p.command("show", idText(newest.ID))}
		if restartable(newest.Status) {
			hints = append(hints, "restart it:     "+p.restartLine(*newest, "FILE"))
		}
		return &exitError{code: ExitRefused, err: fmt.Errorf("execution %d: %w: execution %d (%s)", exec.ID, core.ErrNotMostRecent, newest.ID, newest.Status), hints: hints}
	}
	return nil
}

// execution reads one execution; one that does not exist is a matter of usage.
func (p *program) execution(ctx context.Context, id core.JobExecutionID, also func(s *Session) error) (*core.JobExecution, error) {
	return p.executionWith(ctx, id, func(s *Session, _ *core.JobExecution) error { return also(s) })
}

func (p *program) executionWith(ctx context.Context, id core.JobExecutionID, also func(s *Session, e *core.JobExecution) error) (exec *core.JobExecution, err error) {
	if p.absent(p.settings.Repository.Database) {
		return nil, p.notFound(core.ErrNotFound, id)
	}
	err = p.withSession(ctx, p.quiet(), func(s *Session) error {
		if exec, err = s.Repository.Execution(ctx, id); err != nil {
			return p.notFound(err, id)
		}
		return also(s, exec)
	})
	return exec, err
}

func (p *program) notFound(err error, id core.JobExecutionID) error {
	if errors.Is(err, core.ErrNotFound) {
		return usage(fmt.Errorf("there is no execution %d in %s", id, p.databaseText(p.settings.Repository.Database)),
			"those there are:  "+p.command("list"))
	}
	return err
}

// parametersAgain checks the execution's parameters against the file's present
// declarations: parameters may have been added to it, but the instance must be
// the same. changed are those that are given anew.
func parametersAgain(file *jobfile.File, exec *core.JobExecution, changed map[string]string) (core.Parameters, error) {
	given := map[string]string{}
	var number int64
	for _, q := range exec.Params.All() {
		if n, ok := q.Value.(int64); ok && q.Name == againName {
			number = n
			continue
		}
		text, err := q.Canonical()
		if err != nil {
			return core.Parameters{}, err
		}
		given[q.Name] = text
	}
	maps.Copy(given, changed)
	params, err := job.ValidateParameters(file.Parameters(), given)
	if err == nil {
		params, err = withAgain(params, number)
	}
	if err != nil {
		return core.Parameters{}, usage(fmt.Errorf("the parameters of execution %d do not fit the job file any more: %w", exec.ID, err))
	}
	if params.Key() != exec.Params.Key() {
		return core.Parameters{}, usagef("the job file declares other identifying parameters than at execution %d, which had %s: it would be another instance",
			exec.ID, parameterText(identifying(exec.Params)))
	}
	return params, nil
}

// restartLine is the command that goes on with an execution; path is the job
// file where the history does not have it.
func (p *program) restartLine(e core.JobExecution, path string) string {
	if e.RedriveOf != 0 {
		return p.redriveLine(e)
	}
	if e.Definition.Path != "" {
		return p.command("restart", idText(e.ID))
	}
	return p.command("restart", idText(e.ID), "--file", path)
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
		return 0, usagef("%q is no execution: a number such as 12 is expected", text)
	}
	return core.JobExecutionID(id), nil
}
