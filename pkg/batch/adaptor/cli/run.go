package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

func (p *program) runCommand() *cobra.Command {
	var again bool
	cmd := &cobra.Command{
		Use:   "run FILE [NAME=VALUE ...]",
		Short: "Run a job; an instance that failed or stopped goes on where it was",
		Long: strings.TrimSpace(`
Runs the job of FILE with the given parameters. Its identifying parameters make
the instance: one that failed or stopped goes on where it was, one that is
complete is refused (exit code 4) unless --again makes a new one.

--again adds the identifying parameter ` + againName + `=N to the declared ones, with the
least N that makes a new instance; the newest such instance goes on instead where
it has not completed.

` + p.app.Name + ` run FILE --help lists the parameters of the job.`),
		Example: "  " + p.app.Name + " run jobs/load.yaml year=1996 input=strikes.csv",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("which job file?"), "usage:  "+p.app.Name+" run FILE [NAME=VALUE ...]")
			}
			return nil
		},
		ValidArgsFunction: p.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.run(cmd.Context(), args[0], args[1:], again)
		},
	}
	cmd.Flags().BoolVar(&again, "again", false, "make a new instance of a job that is complete with these parameters")
	p.addFormatFlag(cmd)
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if files := cmd.Flags().Args(); len(files) > 0 {
			p.jobHelp(cmd, files[0])
			return
		}
		help(cmd, args)
	})
	return cmd
}

func (p *program) run(ctx context.Context, path string, words []string, again bool) error {
	given, err := parseParameters(words)
	if err != nil {
		return err
	}
	file, err := p.load(path)
	if err != nil {
		return err
	}
	params, err := job.ValidateParameters(file.Parameters(), given)
	if err != nil {
		return usage(err, "parameters:  "+p.app.Name+" run "+shellQuote(path)+" --help")
	}
	if err := p.configure(); err != nil {
		return err
	}
	return p.perform(ctx, launch{path: path, file: file, params: params, again: again})
}

// load reads a job file; whatever is wrong with it is a matter of usage.
func (p *program) load(path string) (*jobfile.File, error) {
	file, err := jobfile.Load(path, p.app.Registry)
	if err != nil {
		return nil, usage(err)
	}
	return file, nil
}

// parseParameters reads name=value words.
func parseParameters(words []string) (map[string]string, error) {
	given := map[string]string{}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok || name == "" {
			return nil, usagef("%q is no parameter: NAME=VALUE is expected", w)
		}
		if _, twice := given[name]; twice {
			return nil, usagef("parameter %s is given twice", name)
		}
		given[name] = value
	}
	return given, nil
}

// launch is what run and restart ask for.
type launch struct {
	path   string // of the job file, as given
	file   *jobfile.File
	params core.Parameters
	again  bool
}

// perform launches a job, tells what happens, and prints the summary.
func (p *program) perform(ctx context.Context, l launch) error {
	p.announceDatabase(ctx)
	bars := newBars(p.err.startProgress(), p.now)
	defer p.err.endProgress()
	n := newNarrator(p.log, bars, p.now)
	return p.withSession(ctx, n, func(s *Session) error {
		var written targets
		registry, err := written.watch(s.Registry)
		if err != nil {
			return err
		}
		j, err := l.file.Compile(jobfile.Deps{Provider: s.Provider, Registry: registry})
		if err != nil {
			return usage(err)
		}
		if j.Definition.Path, err = filepath.Abs(l.path); err != nil {
			return err
		}
		if l.again {
			if l.params, err = nextInstance(ctx, s.Repository, j, l.params); err != nil {
				return err
			}
		}
		if err := p.warnOfChanges(ctx, s.Repository, j, l.params); err != nil {
			return err
		}
		ctx, signals := p.obeySignals(ctx)
		defer signals.end()
		exec, err := s.Launcher.Run(ctx, j, l.params, signals.stop)
		p.err.endProgress()
		if exec == nil {
			return p.refused(err, j, l)
		}
		exec, failure := p.summarize(context.WithoutCancel(ctx), s, exec, n.passed, written.all())
		if failure != nil {
			p.log.ErrorContext(ctx, "the job is over, but its summary failed", "error", oneLine(failure.Error()))
		}
		return p.explain(exec, err, l.path, n)
	})
}

// refused gives a refused launch its ways out.
func (p *program) refused(err error, j *core.Job, l launch) error {
	var complete *core.InstanceCompleteError
	var running *core.AlreadyRunningError
	code, hints := codeOf(err), p.hints(err)
	switch {
	case errors.As(err, &complete):
		if other, ok := otherParameter(j, l.params); ok {
			hints = append(hints, "another instance:  "+p.command(runWords(l.path, other)...))
		}
		hints = append(hints, "the same again:    "+p.command(runWords(l.path, declaredWords(j, l.params), "--again")...), "what it did:       "+p.command("show", idText(complete.Execution.ID)))
	case errors.As(err, &running):
		hints = append(hints, "what it does:  "+p.command("show", idText(running.ExecutionID)))
		if running.Owner.PID > 0 {
			hints = append(hints, fmt.Sprintf("stop it:       kill -TERM %d  (on %s)", running.Owner.PID, running.Owner.Host))
		}
	case code == ExitRefused:
		hints = append(hints, "its history:       "+p.command("list", "--job", j.Name),
			"a new instance:    "+p.command(runWords(l.path, declaredWords(j, l.params), "--again")...))
	case errors.As(err, new(jobfile.Problems)):
		code = ExitUsage
	}
	return &exitError{code: code, err: err, hints: hints}
}

func runWords(path string, parameters []string, flags ...string) []string {
	return slices.Concat([]string{"run", path}, parameters, flags)
}

// explain turns the end of an execution into the command's end.
func (p *program) explain(exec *core.JobExecution, err error, path string, n *narrator) error {
	hints := []string{
		"restart it:  " + p.restartLine(*exec, path),
		"details:     " + p.command("show", idText(exec.ID)),
	}
	if p.debug {
		for _, stack := range n.stacks {
			hints = append(hints, "stack:\n"+string(stack))
		}
	} else if len(n.stacks) > 0 {
		hints = append(hints, "the stack:   add --debug")
	}
	if err != nil { // the record itself is broken: its status is not to be believed
		return &exitError{code: ExitFailed, err: err, hints: hints}
	}
	switch exec.Status {
	case core.StatusCompleted:
		return nil
	case core.StatusStopped:
		return &exitError{code: ExitStopped, err: fmt.Errorf("job %s stopped%s", exec.JobName, because(exec.Error)), hints: hints}
	case core.StatusFailed, core.StatusUnknown, core.StatusAbandoned, core.StatusStarting, core.StatusStarted, core.StatusStopping:
	}
	return &exitError{code: ExitFailed, err: fmt.Errorf("job %s %s%s", exec.JobName, strings.ToLower(string(exec.Status)), because(exec.Error)), hints: hints}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
