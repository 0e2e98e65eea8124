package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

func (p *program) runCommand() *cobra.Command {
	var l launch
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

A job with an incrementer needs neither: its newest instance goes on where it has
not completed, else the incrementer makes the next one. --next always does.

` + p.app.Name + ` run FILE --help lists the parameters of the job.`),
		Example:           "  " + p.app.Name + " run jobs/load.yaml year=1996 input=strikes.csv",
		Args:              p.fileAndParameters,
		ValidArgsFunction: p.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if l.again && l.next {
				return usagef("--again and --next: one of them")
			}
			return p.run(cmd.Context(), l, args)
		},
	}
	cmd.Flags().BoolVar(&l.again, "again", false, "make a new instance of a job that is complete with these parameters")
	cmd.Flags().BoolVar(&l.next, "next", false, "make the next instance with the job's incrementer")
	p.addLaunchFlags(cmd, &l)
	return cmd
}

func (p *program) nextCommand() *cobra.Command {
	l := launch{next: true}
	cmd := &cobra.Command{
		Use:   "next FILE [NAME=VALUE ...]",
		Short: "Run the next instance of a job, which its incrementer makes",
		Long: `Runs the job of FILE with the parameters that its incrementer makes of those of
the newest execution. A job without an incrementer is refused (exit code 1).

It is "run --next". Without --next, "run" goes on first with an instance that has
not completed.`,
		Example:           "  " + p.app.Name + " next jobs/nightly.yaml",
		Args:              p.fileAndParameters,
		ValidArgsFunction: p.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.run(cmd.Context(), l, args)
		},
	}
	p.addLaunchFlags(cmd, &l)
	return cmd
}

func (p *program) fileAndParameters(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(errors.New("which job file?"), "usage:  "+p.app.Name+" "+cmd.Name()+" FILE [NAME=VALUE ...]")
	}
	return nil
}

// addLaunchFlags adds what run and next have both.
func (p *program) addLaunchFlags(cmd *cobra.Command, l *launch) {
	cmd.Flags().BoolVar(&l.accept, "accept-changes", false, "go on with an instance though its job file has changed in what was done already, or a file behind what was read of it")
	p.addFormatFlag(cmd)
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if files := cmd.Flags().Args(); len(files) > 0 {
			p.jobHelp(cmd, files[0])
			return
		}
		help(cmd, args)
	})
}

func (p *program) run(ctx context.Context, l launch, args []string) (err error) {
	l.path = args[0]
	if l.given, err = parseParameters(args[1:]); err != nil {
		return err
	}
	if l.file, err = p.load(l.path); err != nil {
		return err
	}
	l.params, l.invalid = job.ValidateParameters(l.file.Parameters(), l.given)
	if l.invalid != nil {
		l.invalid = usage(l.invalid, "parameters:  "+p.app.Name+" run "+shellQuote(l.path)+" --help")
	}
	if l.invalid != nil && !p.mayIncrement(l) {
		return l.invalid
	}
	if err := p.configure(); err != nil {
		return err
	}
	return p.perform(ctx, l)
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

// launch is what run, next and restart ask for.
type launch struct {
	path   string // of the job file, as given
	file   *jobfile.File
	given  map[string]string // NAME=VALUE as written; nil: params are fixed
	params core.Parameters
	// invalid is what is wrong with given alone: an incrementer may add what lacks.
	invalid error

	again, next, fromStart bool
	accept                 bool // changes of the definition
}

// perform launches a job, tells what happens, and prints the summary.
func (p *program) perform(ctx context.Context, l launch) error {
	outlivePipes()
	p.announceDatabase(ctx)
	bars := newBars(p.err.startProgress(), p.now)
	defer p.err.endProgress()
	n := newNarrator(p.log, bars, p.now)
	return p.withSession(ctx, n, func(s *Session) error {
		var written targets
		j, err := l.file.Compile(jobfile.Deps{Provider: s.Provider, Registry: written.watch(s.Registry), FileMode: p.settings.Files.Mode})
		if err != nil {
			return usage(err)
		}
		if j.Definition.Path, err = filepath.Abs(l.path); err != nil {
			return err
		}
		if l.params, err = p.chooseInstance(ctx, s, j, l); err != nil {
			return err
		}
		if err := p.checkChanges(ctx, s.Repository, j, l); err != nil {
			return err
		}
		ctx, signals := p.obeySignals(ctx)
		defer signals.end()
		exec, err := s.Launcher.With(job.Options{FromStart: l.fromStart, AcceptChanges: l.accept}).Run(ctx, j, l.params, signals.stop)
		p.err.endProgress()
		if exec == nil {
			return p.refused(context.WithoutCancel(ctx), s, err, j, l)
		}
		exec, failure := p.summarize(context.WithoutCancel(ctx), s, exec, n.passed, written.all())
		if failure != nil {
			p.log.ErrorContext(ctx, "the job is over, but its summary failed", "error", oneLine(failure.Error()))
		}
		return p.explain(exec, err, l.path, n)
	})
}

// explain turns the end of an execution into the command's end.
// path is the job file where the history does not have it; n may be nil.
func (p *program) explain(exec *core.JobExecution, err error, path string, n *narrator) error {
	hints := append(p.goOnHints(exec, path), p.stackHints(n)...)
	if err != nil { // the record itself is broken: its status is not to be believed
		return &exitError{code: ExitFailed, err: err, hints: hints}
	}
	switch exec.Status {
	case core.StatusCompleted:
		return nil
	case core.StatusStopped:
		return &exitError{code: ExitStopped, err: fmt.Errorf("job %s stopped%s", exec.JobName, because(exec.Error)), hints: hints}
	case core.StatusFailed, core.StatusUnknown, core.StatusAbandoned, core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping:
	}
	code := ExitFailed
	if exec.ExitCode == core.ExitExpectFailed {
		code = ExitExpect
	}
	return &exitError{code: code, err: fmt.Errorf("job %s %s%s", exec.JobName, strings.ToLower(string(exec.Status)), because(exec.Error)), hints: hints}
}

// goOnHints are what can be done about an execution that did not complete.
func (p *program) goOnHints(exec *core.JobExecution, path string) []string {
	details := "details:     " + p.command("show", idText(exec.ID))
	switch exec.Status {
	case core.StatusUnknown:
		return []string{details, "give it up:  " + p.command("abandon", idText(exec.ID)) + "   (once you have looked)"}
	case core.StatusAbandoned:
		return append([]string{details}, p.anewHints(*exec)...)
	case core.StatusFailed, core.StatusStopped, core.StatusCompleted, core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping:
	}
	return []string{"restart it:  " + p.restartLine(*exec, path), details, "why, and what then:  " + p.command("explain", idText(exec.ID))}
}

// stackHints show where a component panicked.
func (p *program) stackHints(n *narrator) []string {
	switch {
	case n == nil || len(n.stacks) == 0:
		return nil
	case !p.debug:
		return []string{"the stack:   add --debug"}
	}
	var hints []string
	for _, stack := range n.stacks {
		hints = append(hints, "stack:\n"+string(stack))
	}
	return hints
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
